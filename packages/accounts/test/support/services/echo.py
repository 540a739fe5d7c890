"""A service that gives the smallest valid answer to every method, for tests of the server itself."""

from service import Media

SMALLEST = {"string": "", "boolean": False, "integer": 0, "number": 0, "any": None}


class Echo:
    def __init__(self, world, api):
        self.world, self.api = world, api

    def add(self, seed):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.answer

    def answer(self, call):
        method = self.api.methods[call.method]
        if call.alt == "media" or method.get("useMediaDownloadService") and "response" not in method:
            return Media(b"0123456789", "text/plain")
        if "response" not in method:
            return None
        schema = self.api.schema(method["response"]["$ref"])
        # Answers by what was sent where the answer is of the same kind, as insert and patch do.
        answer = {name: self.value(inner) for name, inner in schema["properties"].items()
                  if inner.get("type") in ("array", "boolean")}
        if call.body and method.get("request") == method["response"]:
            answer.update({name: value for name, value in call.body.items() if value is not None})
        if "size" in schema["properties"] and call.media is not None:
            answer["size"] = str(len(call.media))
        return answer

    @staticmethod
    def value(schema):
        return [] if schema["type"] == "array" else SMALLEST[schema["type"]]
