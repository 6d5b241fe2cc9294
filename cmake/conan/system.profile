# Conan's settings of this machine, with the libraries that the system's own packages have installed
# in the place of those of Conan Center: conan create cmake/conan --profile cmake/conan/system.profile
include(default)

[platform_requires]
hiredis/1.2.0
libevent/2.1.12
openssl/3.0.0
