"""Turns images into placeholders where the next request would hold too many or too heavy ones."""

from collections.abc import Sequence

from tui_agent.agent.ports import AgentPorts
from tui_agent.context.pruning import PrunePlan, newest_seen, plan_image_prune
from tui_agent.context.settings import ImageSettings
from tui_agent.context.tokens import image_tokens, images_of
from tui_agent.context.view import resolve
from tui_agent.session.entries import Entry, ImagePart


def image_prune(
    path: Sequence[Entry], ports: AgentPorts, settings: ImageSettings, *, model: str, budget: int
) -> PrunePlan | None:
    """Return what to prune before a request to ``model``; ``budget`` is its history budget in tokens."""
    if not ports.directory.traits(model).vision or not any(map(images_of, path)):
        return None
    counter = ports.directory.counter(model)

    def tokens(image: ImagePart) -> int:
        return counter.calibrated(image_tokens(image.width, image.height, model))

    return plan_image_prune(resolve(path), settings, budget, tokens)


def never_sent(path: Sequence[Entry], plan: PrunePlan, settings: ImageSettings) -> str | None:
    """Return a sentence on the images of a plan that no model has seen, None when there are none."""
    seen, targets = newest_seen(path), set(plan.targets)
    unseen = sum(len(images_of(entry)) for entry in path if entry.id in targets and entry.id > seen)
    if not unseen:
        return None
    what = "1 new image is" if unseen == 1 else f"{unseen} new images are"
    most = f"{settings.max_count} images, and of the history's room {settings.max_tokens_share:.0%}"
    return f"{what} not sent: a request holds at most {most} (settings: images)."
