CREATE TABLE sessions (
    id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL, message_count INTEGER NOT NULL DEFAULT 0,
    prompt_tokens INTEGER NOT NULL DEFAULT 0, completion_tokens INTEGER NOT NULL DEFAULT 0, cost REAL NOT NULL DEFAULT 0.0,
    updated_at INTEGER NOT NULL, created_at INTEGER NOT NULL, summary_message_id TEXT
);
CREATE TABLE messages (
    id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL, parts TEXT NOT NULL DEFAULT '[]', model TEXT,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, finished_at INTEGER, provider TEXT,
    is_summary_message INTEGER DEFAULT 0 NOT NULL
);
INSERT INTO sessions VALUES ('s1', NULL, 'The total', 4, 10, 20, 0.25, 1763800000, 1763800000, 'm4');
INSERT INTO sessions VALUES ('s2', 's1', 'Search', 1, 0, 0, 0.0, 1763800003, 1763800003, NULL);
INSERT INTO messages VALUES ('m1', 's1', 'user',
    '[{"type":"text","data":{"text":"why is the total wrong?"}},{"type":"finish","data":{"reason":"stop","time":0}}]',
    '', 1763800000, 1763800000, NULL, NULL, 0);
INSERT INTO messages VALUES ('m2', 's1', 'assistant',
    '[{"type":"reasoning","data":{"thinking":"Let me look.","signature":"x"}},{"type":"text","data":{"text":"Looking."}},{"type":"tool_call","data":{"id":"c1","name":"view","input":"{\"file_path\": \"shop.py\"}","finished":true}},{"type":"finish","data":{"reason":"tool_use","time":1763800001}}]',
    'claude-sonnet-4-5', 1763800001, 1763800001, 1763800001, 'anthropic', 0);
INSERT INTO messages VALUES ('m3', 's1', 'tool',
    '[{"type":"tool_result","data":{"tool_call_id":"c1","name":"view","content":"no such file","metadata":"","is_error":true}}]',
    '', 1763800002, 1763800002, NULL, NULL, 0);
INSERT INTO messages VALUES ('m4', 's1', 'assistant',
    '[{"type":"text","data":{"text":"It was the tax."}},{"type":"finish","data":{"reason":"end_turn","time":1763800003}}]',
    'claude-sonnet-4-5', 1763800003, 1763800003, 1763800003, 'anthropic', 1);
INSERT INTO messages VALUES ('m5', 's2', 'user', '[{"type":"text","data":{"text":"search"}}]',
    '', 1763800003, 1763800003, NULL, NULL, 0);
