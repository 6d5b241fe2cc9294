# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
"""The recipe of Conan 2: conan create cmake/conan. It has the sources that it stands in."""

import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rm, rmdir
from conan.tools.gnu import PkgConfigDeps


class HirelockConan(ConanFile):
    name = "hirelock"
    description = "Distributed locks on Redis, kept alive by a watchdog"
    license = "MIT"
    topics = ("redis", "lock", "distributed")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "tls": [True, False]}
    default_options = {"shared": True, "tls": True}
    required_conan_version = ">=2.0"

    @property
    def project_folder(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        text = load(self, os.path.join(self.project_folder, "include", "hirelock", "version.h"))
        parts = (re.search(rf"HL_VERSION_{part} (\d+)", text) for part in ("MAJOR", "MINOR", "PATCH"))
        self.version = ".".join(part.group(1) for part in parts)

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "README.md", "CHANGELOG.md", "cmake/*", "docs/*",
                        "examples/*", "include/*", "lua/*", "src/*"):
            copy(self, pattern, self.project_folder, self.export_sources_folder)

    def configure(self):  # the library is C
        self.settings.rm_safe("compiler.cppstd")
        self.settings.rm_safe("compiler.libcxx")

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        self.requires("hiredis/1.2.0")
        self.requires("libevent/2.1.12")
        if self.options.tls:
            self.requires("openssl/[>=3 <4]")

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["HL_TLS"] = "ON" if self.options.tls else "OFF"
        for part in ("TESTS", "CLI", "EXAMPLES", "BENCH"):
            toolchain.cache_variables[f"HL_BUILD_{part}"] = False
        toolchain.generate()
        PkgConfigDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        cmake = CMake(self)
        for component in ("lib", "dev"):
            cmake.install(component=component)
        libraries = os.path.join(self.package_folder, "lib")
        rm(self, "*.a" if self.options.shared else "*.so*", libraries, recursive=True)
        # Conan writes its own, for its own folders.
        rmdir(self, os.path.join(libraries, "cmake"))
        rmdir(self, os.path.join(libraries, "pkgconfig"))
        rmdir(self, os.path.join(self.package_folder, "share"))

    def package_info(self):
        target = "hirelock" if self.options.shared else "hirelock_static"
        self.cpp_info.libs = ["hirelock"]
        self.cpp_info.set_property("cmake_file_name", "hirelock")
        self.cpp_info.set_property("cmake_target_name", f"hirelock::{target}")
        self.cpp_info.set_property("pkg_config_name", "hirelock")
        if not self.options.shared:
            self.cpp_info.system_libs = ["pthread"]
