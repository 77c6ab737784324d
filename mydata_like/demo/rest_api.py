"""The web application: routes requests to their functions."""

from collections.abc import Callable

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
    app.add_url_rule(f"{API}/", view_func=_list_resources, methods=["GET"])
    for path, views in _routes(site).items():
        for method, view in views.items():
            app.add_url_rule(
                f"{API}/{path}/",
                f"{method} {path}",
                view_func=view,
                methods=[method],
                provide_automatic_options=False,
            )

    @app.before_request
    def find_caller() -> None:
        if request.path != f"{API}/":
            g.caller = identify(site.store)

    return app


def _routes(site: ServerContext) -> dict[str, dict[str, View]]:
    accounts = Accounts(site)
    datasets = DatasetResource(site, accounts)
    registrar = Registrar(site)
    ours = Datafiles(site, registrar, ours=True)
    plain = Datafiles(site, registrar, ours=False)
    return (
        _account_routes(accounts)
        | _uploader_routes(UploaderResource(site), Registrations(site))
        | _hierarchy_routes(Experiments(site), datasets)
        | _datafile_routes("mydata_dataset_file", ours)
        | _datafile_routes("dataset_file", plain)
        | {"dataset/<int:dataset>/files": {"GET": plain.list_datafiles}}
        | _replica_routes("mydata_replica", Replicas(site, ours=True))
        | _replica_routes("replica", Replicas(site, ours=False))
        | _chunk_routes(Chunks(site))
    )


def _account_routes(accounts: Accounts) -> dict[str, dict[str, View]]:
    rename = accounts.rename_instrument
    return {
        "user": {"GET": accounts.list_users},
        "user/<int:number>": {"GET": accounts.show_user},
        "mydata_user": {"GET": accounts.find_migrated_user},
        "group": {"GET": accounts.list_groups},
        "facility": {"GET": accounts.list_facilities},
        "instrument": {"GET": accounts.list_instruments, "POST": accounts.create_instrument},
        "instrument/<int:number>": {
            "GET": accounts.get_instrument,
            "PUT": rename,
            "PATCH": rename,
        },
    }


def _uploader_routes(
    uploaders: UploaderResource, registrations: Registrations
) -> dict[str, dict[str, View]]:
    change = uploaders.change_uploader
    return {
        "mydata_uploader": {"GET": uploaders.list_uploaders, "POST": uploaders.create_uploader},
        "mydata_uploader/<int:number>": {
            "GET": uploaders.get_uploader,
            "PUT": change,
            "PATCH": change,
        },
        "mydata_uploaderregistrationrequest": {
            "GET": registrations.list_requests,
            "POST": registrations.create_request,
        },
    }


def _hierarchy_routes(
    experiments: Experiments, datasets: DatasetResource
) -> dict[str, dict[str, View]]:
    return {
        "mydata_experiment": {
            "GET": experiments.list_experiments,
            "POST": experiments.create_experiment,
        },
        "experiment": {"GET": experiments.list_experiments},
        "mydata_experiment/<int:number>": {"GET": experiments.get_experiment},
        "experiment/<int:number>": {
            "GET": experiments.get_experiment,
            "DELETE": experiments.delete_experiment,
        },
        "objectacl": {"POST": experiments.grant},
        "dataset": {"GET": datasets.list_datasets, "POST": datasets.create_dataset},
        "dataset/<int:number>": {
            "GET": datasets.get_dataset,
            "PATCH": datasets.change_dataset,
            "DELETE": datasets.delete_dataset,
        },
        "mydata_dataset_stats/<int:number>": {"GET": datasets.get_numbers},
    }


def _datafile_routes(resource: str, datafiles: Datafiles) -> dict[str, dict[str, View]]:
    return {
        resource: {
            "GET": datafiles.list_datafiles,
            "POST": datafiles.create,
            "PATCH": datafiles.apply,
            "PUT": datafiles.replace_list,
        },
        f"{resource}/<int:number>": {
            "GET": datafiles.get_datafile,
            "PATCH": datafiles.change,
            "PUT": datafiles.replace,
            "DELETE": datafiles.delete,
        },
        f"{resource}/set/<numbers>": {"GET": datafiles.get_set},
        f"{resource}/<int:number>/verify": {"GET": datafiles.verify},
        f"{resource}/<int:number>/download": {"GET": datafiles.download},
    }


def _replica_routes(resource: str, replicas: Replicas) -> dict[str, dict[str, View]]:
    return {
        resource: {"GET": replicas.list_replicas, "POST": replicas.refuse},
        f"{resource}/<int:number>": {
            "GET": replicas.get_replica,
            "PATCH": replicas.refuse,
            "PUT": replicas.refuse,
        },
    }


def _chunk_routes(chunks: Chunks) -> dict[str, dict[str, View]]:
    return {
        "mydata_upload/<int:number>": {"GET": chunks.get_status},
        "mydata_upload/<int:number>/upload": {"POST": chunks.take_chunk},
        "mydata_upload/<int:number>/complete": {"GET": chunks.complete},
    }


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
