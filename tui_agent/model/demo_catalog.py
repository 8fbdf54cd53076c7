"""The catalog of a program that has the demo model."""

from tui_agent.model.catalog import Catalog, ModelInfo
from tui_agent.model.demo import DEMO_MAX_OUTPUT, DEMO_MODEL, DEMO_WINDOW


class DemoCatalog(Catalog):
    """The catalog with the demo model in it."""

    def info(self, model: str) -> ModelInfo:
        if model == DEMO_MODEL:
            return ModelInfo(DEMO_MODEL, "demo", DEMO_WINDOW, DEMO_MAX_OUTPUT)
        return super().info(model)

    def knows(self, model: str) -> bool:
        return model == DEMO_MODEL or super().knows(model)
