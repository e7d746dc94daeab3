"""Answers what a framework of Python reads: python.py FRAMEWORK PORT."""
import json
import sys

framework, port = sys.argv[1], int(sys.argv[2])


def answer(cookie, query, header):
    return json.dumps({"cookie": cookie, "query": query, "header": (header or "").strip()}, default=str)


if framework == "flask":
    from flask import Flask, request
    app = Flask(__name__)

    @app.route("/")
    def read():
        return answer(request.cookies.get("sid"), request.args.get("k"), request.headers.get("X-API-Key"))
    app.run("127.0.0.1", port)
elif framework == "django":
    from wsgiref.simple_server import make_server
    import django
    from django.conf import settings
    from django.http import HttpResponse
    from django.urls import path
    settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="test")
    django.setup()

    def read(request):
        return HttpResponse(answer(request.COOKIES.get("sid"), request.GET.get("k"), request.headers.get("X-API-Key")))
    urlpatterns = [path("", read)]
    from django.core.wsgi import get_wsgi_application
    make_server("127.0.0.1", port, get_wsgi_application()).serve_forever()
elif framework == "fastapi":
    from typing import Optional
    import uvicorn
    from fastapi import Cookie, FastAPI, Header, Response
    app = FastAPI()

    @app.get("/")
    def read(sid: Optional[str] = Cookie(None), k: Optional[str] = None, x_api_key: Optional[str] = Header(None)):
        return Response(answer(sid, k, x_api_key))
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")
else:
    import asyncio
    from tornado.web import Application, RequestHandler

    class Read(RequestHandler):
        def get(self):
            self.write(answer(self.get_cookie("sid"), self.get_argument("k", None), self.request.headers.get("X-API-Key")))

    async def main():
        Application([("/", Read)]).listen(port, "127.0.0.1")
        await asyncio.Event().wait()
    asyncio.run(main())
