"""A client of `millrace serve`, which needs no packages: docs/serve.md has the requests.

    client = Client("http://127.0.0.1:8080")
    for hit in client.search("water mill", k=3)["hits"]:
        print(hit["rank"], hit["name"], hit["score"])
"""

import json
import urllib.error
import urllib.parse
import urllib.request


class Client:
    def __init__(self, address, token=None):
        self.address = address.rstrip("/")
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def ask(self, path, body=None, method=None):
        request = urllib.request.Request(self.address + path, body, self.headers, method=method)
        try:
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise ValueError(json.load(error)["error"]) from error

    def search(self, query, **wishes):
        """The answer to a text; `wishes` are k, offset, mode, filter, sort, facets and more."""
        return self.ask("/v1/search", json.dumps({"query": query, **wishes}).encode())

    def search_all(self, queries):
        """The answers to a list of objects, in their order."""
        return self.ask("/v1/search", json.dumps(list(queries)).encode())

    def add(self, documents):
        """Adds or replaces documents, objects with an id; returns when searches see them."""
        lines = "\n".join(json.dumps(document) for document in documents)
        return self.ask("/v1/documents", lines.encode())

    def delete(self, *names):
        return self.ask("/v1/documents/delete", json.dumps(names).encode())

    def document(self, name):
        return self.ask("/v1/documents?" + urllib.parse.urlencode({"name": name}))
