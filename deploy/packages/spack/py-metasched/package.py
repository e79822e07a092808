"""Recipe for Spack: put its folder into a repository of packages, then `spack install py-metasched`."""

from spack.package import *


class PyMetasched(PythonPackage):
    """Learns how long parallel applications take and where they should run."""

    homepage = "https://example.org/metasched"
    # An archive of `make packages`, in a mirror or beside the recipe.
    url = "file:///opt/mirror/metasched-0.1.0.tar.gz"

    license("Apache-2.0")

    version("0.1.0")

    variant("postgresql", default=False, description="Keep the database in PostgreSQL")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-setuptools@77:", type="build")
    depends_on("py-alembic@1.13:1", type=("build", "run"))
    depends_on("py-clustershell@1.9:1", type=("build", "run"))
    depends_on("py-fastapi@0.110:0", type=("build", "run"))
    depends_on("py-httptools@0.6:0", type=("build", "run"))
    depends_on("py-jinja2@3.1:3", type=("build", "run"))
    depends_on("py-matplotlib@3.8:3", type=("build", "run"))
    depends_on("py-networkx@3.2:3", type=("build", "run"))
    depends_on("py-numpy@1.26:2", type=("build", "run"))
    depends_on("py-prometheus-client@0.20:0", type=("build", "run"))
    depends_on("py-psutil@5.9.6:7", type=("build", "run"))
    depends_on("py-pydantic@2.6:2", type=("build", "run"))
    depends_on("py-rich@13.7:15", type=("build", "run"))
    depends_on("py-scikit-learn@1.6:1", type=("build", "run"))
    depends_on("py-scipy@1.11:1", type=("build", "run"))
    depends_on("py-sqlalchemy@2.0.28:2", type=("build", "run"))
    depends_on("py-threadpoolctl@3.1:3", type=("build", "run"))
    depends_on("py-typer@0.12:0", type=("build", "run"))
    depends_on("py-uvicorn@0.29:0", type=("build", "run"))
    depends_on("py-uvloop@0.19:0", type=("build", "run"))
    depends_on("py-psycopg@3.2:3", type=("build", "run"), when="+postgresql")
