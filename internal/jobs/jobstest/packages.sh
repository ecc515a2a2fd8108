# Sourced by mysql.sh and versions.sh.

# download APT PACKAGE... puts packages and what they need into APT/archives, from where
# APT/sources.list says, with a separate apt state: the system's stays as it is.
download() {
  local apt=$1
  mkdir -p "$apt"/{lists,archives}/partial
  : >"$apt/status"
  # Read after the system's configuration, so that a proxy set there is used and a hook set there is not.
  cat >"$apt/apt.conf" <<-END
	#clear APT::Update::Pre-Invoke;
	#clear APT::Update::Post-Invoke;
	#clear APT::Update::Post-Invoke-Success;
	Dir::Etc::SourceList "$apt/sources.list";
	Dir::Etc::SourceParts "/dev/null";
	Dir::Etc::Preferences "/dev/null";
	Dir::Etc::PreferencesParts "/dev/null";
	Dir::State "$apt";
	Dir::State::Lists "$apt/lists";
	Dir::State::Status "$apt/status";
	Dir::Cache "$apt";
	Dir::Log "$apt";
	APT::Sandbox::User "";
	Acquire::Languages "none";
	END
  apt-get -c "$apt/apt.conf" update -qq
  (cd "$apt" && apt-get -c "$apt/apt.conf" install -y -qq --no-install-recommends --download-only "${@:2}" >/dev/null)
}
