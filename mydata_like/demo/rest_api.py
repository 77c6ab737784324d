"""The web application: routes requests to their functions."""

from collections.abc import Callable, Iterator

from flask import Flask, Response, g, request
from werkzeug.exceptions import InternalServerError, NotFound

from mydata_like.demo.accounts import Accounts
from mydata_like.demo.context import API, ServerContext, identify
from mydata_like.demo.datafiles import Datafiles, Registrar
from mydata_like.demo.experiments import DatasetResource, Experiments
from mydata_like.demo.replicas import Chunks, Replicas
from mydata_like.demo.requests import Refusal, answer_json, answer_refusal, failed
from mydata_like.demo.uploaders import Registrations, UploaderResource

View = Callable[..., Response]

_RESOURCES = [
    "dataset",
    "dataset_file",
    "experiment",
    "facility",
    "group",
    "instrument",
    "mydata_dataset_file",
    "mydata_dataset_stats",
    "mydata_experiment",
    "mydata_replica",
    "mydata_upload",
    "mydata_uploader",
    "mydata_uploaderregistrationrequest",
    "mydata_uploadersetting",
    "mydata_user",
    "objectacl",
    "replica",
    "schema",
    "storagebox",
    "storageboxattribute",
    "storageboxoption",
    "user",
]


def build_app(site: ServerContext) -> Flask:
    """Return the application for a site."""
    app = Flask("mydata_like.demo", static_folder=None)
    app.register_error_handler(Refusal, answer_refusal)
    app.register_error_handler(NotFound, _show_not_found)
    app.register_error_handler(InternalServerError, _show_fault)
    for methods, path, view in _routes(site):
        app.add_url_rule(
            f"{API}/{path}/" if path else f"{API}/",
            f"{methods} {path}",
            view_func=view,
            methods=methods.split(),
            provide_automatic_options=False,
        )

    @app.before_request
    def find_caller() -> None:
        if request.path != f"{API}/":
            g.caller = identify(site.store)

    return app


def _routes(site: ServerContext) -> Iterator[tuple[str, str, View]]:
    """Yield the methods, the path below the API's and the function of each request."""
    accounts = Accounts(site)
    yield "GET", "", _list_resources
    yield "GET", "user", accounts.list_users
    yield "GET", "user/<int:number>", accounts.show_user
    yield "GET", "mydata_user", accounts.find_migrated_user
    yield "GET", "group", accounts.list_groups
    yield "GET", "facility", accounts.list_facilities
    yield "GET", "instrument", accounts.list_instruments
    yield "POST", "instrument", accounts.create_instrument
    yield "GET", "instrument/<int:number>", accounts.get_instrument
    yield "PUT PATCH", "instrument/<int:number>", accounts.rename_instrument
    uploaders = UploaderResource(site)
    yield "GET", "mydata_uploader", uploaders.list_uploaders
    yield "POST", "mydata_uploader", uploaders.create_uploader
    yield "GET", "mydata_uploader/<int:number>", uploaders.get_uploader
    yield "PUT PATCH", "mydata_uploader/<int:number>", uploaders.change_uploader
    registrations = Registrations(site)
    yield "GET", "mydata_uploaderregistrationrequest", registrations.list_requests
    yield "POST", "mydata_uploaderregistrationrequest", registrations.create_request
    experiments = Experiments(site)
    for resource in ("mydata_experiment", "experiment"):
        yield "GET", resource, experiments.list_experiments
        yield "GET", f"{resource}/<int:number>", experiments.get_experiment
    yield "POST", "mydata_experiment", experiments.create_experiment
    yield "DELETE", "experiment/<int:number>", experiments.delete_experiment
    yield "POST", "objectacl", experiments.grant
    datasets = DatasetResource(site, accounts)
    yield "GET", "dataset", datasets.list_datasets
    yield "POST", "dataset", datasets.create_dataset
    yield "GET", "dataset/<int:number>", datasets.get_dataset
    yield "PATCH", "dataset/<int:number>", datasets.change_dataset
    yield "DELETE", "dataset/<int:number>", datasets.delete_dataset
    yield "GET", "mydata_dataset_stats/<int:number>", datasets.get_numbers
    registrar = Registrar(site)
    for resource, ours in (("mydata_dataset_file", True), ("dataset_file", False)):
        datafiles = Datafiles(site, registrar, ours=ours)
        yield "GET", resource, datafiles.list_datafiles
        yield "POST", resource, datafiles.create
        yield "PATCH", resource, datafiles.apply
        yield "PUT", resource, datafiles.replace_list
        yield "GET", f"{resource}/<int:number>", datafiles.get_datafile
        yield "PATCH", f"{resource}/<int:number>", datafiles.change
        yield "PUT", f"{resource}/<int:number>", datafiles.replace
        yield "DELETE", f"{resource}/<int:number>", datafiles.delete
        yield "GET", f"{resource}/set/<numbers>", datafiles.get_set
        yield "GET", f"{resource}/<int:number>/verify", datafiles.verify
        yield "GET", f"{resource}/<int:number>/download", datafiles.download
        if not ours:
            yield "GET", "dataset/<int:dataset>/files", datafiles.list_datafiles
    for resource, ours in (("mydata_replica", True), ("replica", False)):
        replicas = Replicas(site, ours=ours)
        yield "GET", resource, replicas.list_replicas
        yield "POST", resource, replicas.refuse
        yield "GET", f"{resource}/<int:number>", replicas.get_replica
        yield "PUT PATCH", f"{resource}/<int:number>", replicas.refuse
    chunks = Chunks(site)
    yield "GET", "mydata_upload/<int:number>", chunks.get_status
    yield "POST", "mydata_upload/<int:number>/upload", chunks.take_chunk
    yield "GET", "mydata_upload/<int:number>/complete", chunks.complete


def _list_resources() -> Response:
    """Answer with the list of resources; needs no access rights."""
    return answer_json(
        {
            name: {"list_endpoint": f"{API}/{name}/", "schema": f"{API}/{name}/schema/"}
            for name in _RESOURCES
        }
    )


def _show_fault(_error: InternalServerError) -> Response:
    """Answer an unexpected error, which Flask has logged, as the real server does."""
    return answer_refusal(failed())


def _show_not_found(_error: NotFound) -> Response:
    """Answer with the HTML page that the real server has for unknown paths."""
    page = "<!DOCTYPE html>\n<html><body><h1>Page not found</h1></body></html>\n"
    return Response(page, 404)
