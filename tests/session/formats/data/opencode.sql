CREATE TABLE `session` (
          `id` text PRIMARY KEY,
          `project_id` text NOT NULL,
          `workspace_id` text,
          `parent_id` text,
          `slug` text NOT NULL,
          `directory` text NOT NULL,
          `path` text,
          `title` text NOT NULL,
          `version` text NOT NULL,
          `share_url` text,
          `summary_additions` integer,
          `summary_deletions` integer,
          `summary_files` integer,
          `summary_diffs` text,
          `metadata` text,
          `cost` real DEFAULT 0 NOT NULL,
          `tokens_input` integer DEFAULT 0 NOT NULL,
          `tokens_output` integer DEFAULT 0 NOT NULL,
          `tokens_reasoning` integer DEFAULT 0 NOT NULL,
          `tokens_cache_read` integer DEFAULT 0 NOT NULL,
          `tokens_cache_write` integer DEFAULT 0 NOT NULL,
          `revert` text,
          `permission` text,
          `agent` text,
          `model` text,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `time_compacting` integer,
          `time_archived` integer,
          CONSTRAINT `fk_session_project_id_project_id_fk` FOREIGN KEY (`project_id`) REFERENCES `project`(`id`) ON DELETE CASCADE
        );
INSERT INTO session VALUES('ses_dfcdd3d6dffeCgLRlKt454eFpw','1ac4e7d04299ccc1d2e6728706aeb24ecfdf044f',NULL,NULL,'jolly-wizard','/home/ann/shop','','A short answer 7','1.18.33',NULL,0,0,0,NULL,NULL,0.0,2429,179,0,600,0,NULL,'[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]','build','{"id":"scripted","providerID":"local","variant":"default"}',1795348939411,1795349000421,NULL,NULL);
CREATE TABLE `message` (
          `id` text PRIMARY KEY,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_message_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
        );
INSERT INTO message VALUES('msg_20322c5850010TQf5AfpeZeMPj','ses_dfcdd3d6dffeCgLRlKt454eFpw',1795348940166,1795348968505,'{"role":"user","time":{"created":1795348940166},"agent":"build","model":{"providerID":"local","modelID":"scripted"},"summary":{"diffs":[]}}');
INSERT INTO message VALUES('msg_20322de54001zGfR4f0R9AzEcq','ses_dfcdd3d6dffeCgLRlKt454eFpw',1795348946516,1795348966479,'{"parentID":"msg_20322c5850010TQf5AfpeZeMPj","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/ann/shop","root":"/home/ann/shop"},"cost":0,"tokens":{"total":1066,"input":808,"output":58,"reasoning":0,"cache":{"write":0,"read":200}},"modelID":"scripted","providerID":"local","time":{"created":1795348946516,"completed":1795348966460},"finish":"tool-calls"}');
INSERT INTO message VALUES('msg_203232c9e001OXt6W06Z3laa9t','ses_dfcdd3d6dffeCgLRlKt454eFpw',1795348966558,1795348969406,'{"parentID":"msg_20322c5850010TQf5AfpeZeMPj","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/ann/shop","root":"/home/ann/shop"},"cost":0,"tokens":{"total":1070,"input":810,"output":60,"reasoning":0,"cache":{"write":0,"read":200}},"modelID":"scripted","providerID":"local","time":{"created":1795348966558,"completed":1795348969404},"finish":"stop"}');
INSERT INTO message VALUES('msg_2032374640011DZltHLT0UBpXC','ses_dfcdd3d6dffeCgLRlKt454eFpw',1795348984945,1795348992960,'{"role":"user","time":{"created":1795348984945},"agent":"build","model":{"providerID":"local","modelID":"scripted"},"summary":{"diffs":[]}}');
INSERT INTO message VALUES('msg_203238ee2001Cjbai2YZzSgvUb','ses_dfcdd3d6dffeCgLRlKt454eFpw',1795348991715,1795349000159,'{"parentID":"msg_2032374640011DZltHLT0UBpXC","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/ann/shop","root":"/home/ann/shop"},"cost":0,"tokens":{"total":1072,"input":811,"output":61,"reasoning":0,"cache":{"write":0,"read":200}},"modelID":"scripted","providerID":"local","time":{"created":1795348991715,"completed":1795349000128},"finish":"stop"}');
CREATE TABLE `part` (
          `id` text PRIMARY KEY,
          `message_id` text NOT NULL,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_part_message_id_message_id_fk` FOREIGN KEY (`message_id`) REFERENCES `message`(`id`) ON DELETE CASCADE
        );
INSERT INTO part VALUES('prt_20322c5b8001xnfMFSxXSYJeBa','msg_20322c5850010TQf5AfpeZeMPj','ses_dfcdd3d6dffeCgLRlKt454eFpw',1795348946372,1795348946388,'{"type":"text","text":"\"use a tool please\""}');
INSERT INTO part VALUES('prt_203231a63001xRHFp84P3p8OpC','msg_20322de54001zGfR4f0R9AzEcq','ses_dfcdd3d6dffeCgLRlKt454eFpw',1795348961892,1795348961937,'{"snapshot":"b65741685486c533f6239bc4548babebc2182a3b","type":"step-start"}');
INSERT INTO part VALUES('prt_203231ac8001wqp7aJZzYu3Sef','msg_20322de54001zGfR4f0R9AzEcq','ses_dfcdd3d6dffeCgLRlKt454eFpw',1795348961992,1795348962191,'{"type":"text","text":"Looking.","time":{"start":1795348961992,"end":1795348962188}}');
INSERT INTO part VALUES('prt_203231b3f001pQPKnnmVrWE6EY','msg_20322de54001zGfR4f0R9AzEcq','ses_dfcdd3d6dffeCgLRlKt454eFpw',1795348962112,1795348962137,'{"type":"reasoning","text":"I should look.","time":{"start":1795348962111,"end":1795348962135}}');
INSERT INTO part VALUES('prt_203231b5e001E5tpJ2JBWGo3h6','msg_20322de54001zGfR4f0R9AzEcq','ses_dfcdd3d6dffeCgLRlKt454eFpw',1795348962143,1795348964885,'{"type":"tool","tool":"bash","callID":"call_8","state":{"status":"completed","input":{"command":"echo hello > made.txt; cat made.txt"},"output":"hello\n","metadata":{"output":"hello\n","exit":0,"truncated":false},"title":"echo hello > made.txt; cat made.txt","time":{"start":1795348962170,"end":1795348964593}}}');
INSERT INTO part VALUES('prt_203232a33001qf5yI60PJnWc3m','msg_20322de54001zGfR4f0R9AzEcq','ses_dfcdd3d6dffeCgLRlKt454eFpw',1795348965940,1795348965945,'{"reason":"tool-calls","snapshot":"b65741685486c533f6239bc4548babebc2182a3b","type":"step-finish","tokens":{"total":1066,"input":808,"output":58,"reasoning":0,"cache":{"write":0,"read":200}},"cost":0}');
INSERT INTO part VALUES('prt_20323320e001FxIlQGoXiLe0Xc','msg_203232c9e001OXt6W06Z3laa9t','ses_dfcdd3d6dffeCgLRlKt454eFpw',1795348967950,1795348967983,'{"snapshot":"b65741685486c533f6239bc4548babebc2182a3b","type":"step-start"}');
INSERT INTO part VALUES('prt_203233263001DEmZzPBq3HUTww','msg_203232c9e001OXt6W06Z3laa9t','ses_dfcdd3d6dffeCgLRlKt454eFpw',1795348968036,1795348968191,'{"type":"text","text":"Done, answer 10.","time":{"start":1795348968035,"end":1795348968183}}');
INSERT INTO part VALUES('prt_2032332b0001DrusS9QN48RXM5','msg_203232c9e001OXt6W06Z3laa9t','ses_dfcdd3d6dffeCgLRlKt454eFpw',1795348968112,1795348968161,'{"type":"reasoning","text":"All is well.","time":{"start":1795348968112,"end":1795348968140}}');
INSERT INTO part VALUES('prt_20323367e001JxsYSxruB1cSJD','msg_203232c9e001OXt6W06Z3laa9t','ses_dfcdd3d6dffeCgLRlKt454eFpw',1795348969086,1795348969087,'{"reason":"stop","snapshot":"b65741685486c533f6239bc4548babebc2182a3b","type":"step-finish","tokens":{"total":1070,"input":810,"output":60,"reasoning":0,"cache":{"write":0,"read":200}},"cost":0}');
INSERT INTO part VALUES('prt_203237484001lEsJwiZWV15y96','msg_2032374640011DZltHLT0UBpXC','ses_dfcdd3d6dffeCgLRlKt454eFpw',1795348991627,1795348991643,'{"type":"text","text":"thanks"}');
INSERT INTO part VALUES('prt_20323acf0001dTYYi9btBr3Opz','msg_203238ee2001Cjbai2YZzSgvUb','ses_dfcdd3d6dffeCgLRlKt454eFpw',1795348999408,1795348999415,'{"snapshot":"b65741685486c533f6239bc4548babebc2182a3b","type":"step-start"}');
INSERT INTO part VALUES('prt_20323ad00001hdwjDxPGCCUMjp','msg_203238ee2001Cjbai2YZzSgvUb','ses_dfcdd3d6dffeCgLRlKt454eFpw',1795348999424,1795348999471,'{"type":"text","text":"Done, answer 11.","time":{"start":1795348999424,"end":1795348999469}}');
INSERT INTO part VALUES('prt_20323ad120016etxTl311e8P5v','msg_203238ee2001Cjbai2YZzSgvUb','ses_dfcdd3d6dffeCgLRlKt454eFpw',1795348999442,1795348999463,'{"type":"reasoning","text":"All is well.","time":{"start":1795348999442,"end":1795348999452}}');
INSERT INTO part VALUES('prt_20323ae29001smpPZGSIbNY1KZ','msg_203238ee2001Cjbai2YZzSgvUb','ses_dfcdd3d6dffeCgLRlKt454eFpw',1795348999721,1795348999724,'{"reason":"stop","snapshot":"b65741685486c533f6239bc4548babebc2182a3b","type":"step-finish","tokens":{"total":1072,"input":811,"output":61,"reasoning":0,"cache":{"write":0,"read":200}},"cost":0}');
