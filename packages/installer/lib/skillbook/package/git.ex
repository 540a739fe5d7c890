defmodule Skillbook.Package.Git do
  @moduledoc false
  # Reads one commit of a git repository with the `git` program. Nothing is checked out: objects
  # are fetched into a temporary bare repository and read directly, so attributes, filters,
  # hooks and submodules have no effect.

  alias Skillbook.Package.Item
  alias Skillbook.PackageError
  alias Skillbook.Support.Number

  @timeout :timer.minutes(5)
  @max_listing_size 64 * 1024 * 1024
  @progress_interval 200
  # The only variables of git that are passed on. Others select another repository or run
  # programs.
  @allowed_variables ~w(GIT_SSL_CAINFO GIT_SSL_CAPATH GIT_SSL_CERT GIT_SSL_KEY) ++
                       ~w(GIT_CONFIG_NOSYSTEM GIT_CONFIG_GLOBAL)
  @protocols "https:ssh:file"

  @doc "Whether a source is the address of a repository rather than a path."
  def address?(source),
    do: source =~ ~r{\A[a-z][a-z0-9+.-]*:}i or source =~ ~r{\A[^/@\s]+@[^/:\s]+:}

  @doc "Whether a folder is a bare repository."
  def bare?(folder),
    do: Enum.all?(["HEAD", "objects", "refs"], &File.exists?(Path.join(folder, &1)))

  @doc "Checks an address and a revision before they become arguments of `git`."
  @spec check(String.t(), map()) :: :ok | {:error, PackageError.t()}
  def check(place, asked) do
    with :ok <- check_place(place), do: Enum.find_value(asked, :ok, &check_ref/1)
  end

  defp check_place(place) do
    [scheme | _] = String.split(place, "://", parts: 2)

    cond do
      not String.printable?(place) or String.starts_with?(place, "-") ->
        PackageError.new(:source, place, "is not the address of a git repository")

      Path.type(place) == :absolute or String.downcase(scheme) in ["https", "ssh", "file"] ->
        :ok

      place =~ ~r{\A[^/@\s-][^/@\s]*@[^/:\s-][^/:\s]*:(?!:)} ->
        :ok

      true ->
        PackageError.new(
          :source,
          place,
          "is not a supported address",
          "write https://…, ssh://…, user@host:path, or a path"
        )
    end
  end

  defp check_ref({:commit, commit}) do
    unless commit =~ ~r/\A([0-9a-f]{40}|[0-9a-f]{64})\z/,
      do:
        PackageError.new(
          :option,
          commit,
          "is not a commit",
          "write all its 40 hexadecimal digits"
        )
  end

  defp check_ref({kind, name}) do
    if name == "" or name =~ ~r/\A[-\/]|[\s~^:?*\[\\\x00-\x1f\x7f]|\.\.|@\{|\/\z|\.lock\z/,
      do: PackageError.new(:option, inspect(name), "is not the name of a #{kind}")
  end

  @doc """
  Fetches a commit into `folder`, which must be empty, and returns its id.

  `asked` has at most one of `:branch`, `:tag` and `:commit`.
  """
  @spec fetch(Path.t(), String.t(), map(), (String.t() -> any())) ::
          {:ok, String.t()} | {:error, PackageError.t()}
  def fetch(folder, place, asked, progress) do
    with :ok <- check(place, asked),
         {:ok, _} <- git(folder, place, ["init", "--quiet", "--bare", "--template=", "."]),
         {:ok, _} <- fetch_ref(folder, place, asked, progress),
         commit = fetched(asked) <> "^{commit}",
         {:ok, id} <- git(folder, place, ["rev-parse", "--verify", commit]) do
      {:ok, String.trim(id)}
    end
  end

  @doc "The current commit of a branch, of a tag, or of the repository's `HEAD`."
  @spec newest(String.t(), map()) :: {:ok, String.t()} | {:error, PackageError.t()}
  def newest(_place, %{commit: commit}), do: {:ok, commit}

  def newest(place, asked) do
    ref = ref(asked)

    with :ok <- check(place, asked),
         {:ok, text} <-
           git(System.tmp_dir!(), place, ["ls-remote", "--", place, ref, ref <> "^{}"]) do
      commits =
        for line <- String.split(text, "\n", trim: true),
            [id, name] <- [String.split(line, "\t")],
            do: {name, id}

      # The line with ^{} is the commit of an annotated tag.
      case List.keyfind(commits, ref <> "^{}", 0) || List.keyfind(commits, ref, 0) do
        {_, id} -> {:ok, id}
        nil -> missing(place, asked)
      end
    end
  end

  defp fetch_ref(folder, place, %{commit: commit}, progress) do
    # Some servers do not serve a commit by its id. Then all branches and tags are fetched.
    options = ["--depth=1", "--no-tags"]
    everything = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"]

    with {:error, _} <- fetch_spec(folder, place, options, [commit], progress),
         do: fetch_spec(folder, place, [], everything, progress)
  end

  defp fetch_ref(folder, place, asked, progress) do
    with {:error, %{reason: reason}} = error <-
           fetch_spec(folder, place, ["--depth=1", "--no-tags"], [ref(asked)], progress) do
      if reason =~ "couldn't find remote ref", do: missing(place, asked), else: error
    end
  end

  defp fetch_spec(folder, place, options, specs, progress) do
    options = [
      "fetch",
      "--progress",
      "--no-write-fetch-head",
      "--no-recurse-submodules" | options
    ]

    git(folder, place, options ++ ["--", place | destinations(specs)], progress)
  end

  defp destinations(specs) do
    for spec <- specs,
        do: if(String.starts_with?(spec, "+"), do: spec, else: "+#{spec}:refs/skillbook/wanted")
  end

  defp fetched(%{commit: commit}), do: commit
  defp fetched(_asked), do: "refs/skillbook/wanted"

  defp ref(%{branch: name}), do: "refs/heads/" <> name
  defp ref(%{tag: name}), do: "refs/tags/" <> name
  defp ref(_), do: "HEAD"

  defp missing(place, asked) do
    case Enum.to_list(asked) do
      [{kind, name}] -> PackageError.new(:git, place, "has no #{kind} #{name}")
      [] -> PackageError.new(:git, place, "has no commit yet")
    end
  end

  @doc "The files of a commit, without their content. Submodules are `:special`."
  @spec items(Path.t(), String.t(), String.t()) :: {:ok, [Item.t()]} | {:error, PackageError.t()}
  def items(folder, place, commit) do
    with {:ok, listing} <-
           git(folder, place, ["ls-tree", "-r", "-z", "-l", "--full-tree", commit]) do
      items = for line <- :binary.split(listing, <<0>>, [:global]), line != "", do: item(line)

      if length(items) > Item.max_source_entries(),
        do:
          PackageError.new(
            :limit,
            place,
            "has #{length(items)} files, and may have #{Item.max_source_entries()}"
          ),
        else: {:ok, items}
    end
  end

  defp item(line) do
    [fields, path] = :binary.split(line, "\t")
    [mode, _type, id, size] = String.split(fields)

    %Item{
      path: path,
      type: type(mode),
      executable: mode == "100755",
      size: if(size == "-", do: 0, else: Number.integer!(size)),
      content: id
    }
  end

  defp type("100" <> _), do: :file
  defp type("120000"), do: :link
  defp type(_), do: :special

  @doc "The content of files of `items/3`, in the same order."
  @spec read(Path.t(), String.t(), [Item.t()]) :: {:ok, [binary()]} | {:error, PackageError.t()}
  def read(_folder, _place, []), do: {:ok, []}

  def read(folder, place, items) do
    ids = Enum.map(items, &[&1.content, ?\n])

    with {:ok, output} <- git(folder, place, ["cat-file", "--batch"], fn _ -> :ok end, ids) do
      {:ok, contents(output, items, [])}
    end
  end

  defp contents(_output, [], done), do: Enum.reverse(done)

  defp contents(output, [%{content: id, size: size} | items], done) do
    head = byte_size("#{id} blob #{size}\n")
    {_, rest} = :erlang.split_binary(output, head)
    {content, <<?\n, rest::binary>>} = :erlang.split_binary(rest, size)
    contents(rest, items, [content | done])
  end

  # Running git

  defp git(folder, place, args, progress \\ fn _ -> :ok end, input \\ "") do
    case System.find_executable("git") do
      nil ->
        PackageError.new(
          :git,
          "git",
          "is not installed",
          "install it with this system's package manager"
        )

      program ->
        scratch =
          Path.join(
            System.tmp_dir!(),
            "skillbook-git-#{System.pid()}-#{System.unique_integer([:positive])}"
          )

        File.mkdir!(scratch)

        try do
          File.write!(Path.join(scratch, "in"), input)
          run(program, folder, place, args, progress, scratch)
        after
          File.rm_rf!(scratch)
        end
    end
  end

  # A port merges its outputs and cannot close its input, so a shell redirects both to files.
  @script ~S(scratch=$1; shift; exec "$@" <"$scratch/in" 2>"$scratch/errors")

  defp run(program, folder, place, args, progress, scratch) do
    port =
      Port.open({:spawn_executable, "/bin/sh"}, [
        :binary,
        :exit_status,
        :hide,
        cd: folder,
        env: environment(),
        args: ["-c", @script, "sh", scratch, program | settings() ++ args]
      ])

    errors = Path.join(scratch, "errors")

    case collect(port, [], 0, System.monotonic_time(:millisecond) + @timeout, errors, progress) do
      {:exit, 0, output} ->
        {:ok, IO.iodata_to_binary(output)}

      {:exit, _status, _output} ->
        failed(place, errors)

      :timeout ->
        PackageError.new(:git, place, "did not answer within #{div(@timeout, 60_000)} minutes")

      :too_large ->
        PackageError.new(:limit, place, "has more than #{Item.max_source_size()} bytes to read")
    end
  end

  defp collect(port, output, size, deadline, errors, progress) do
    receive do
      {^port, {:data, data}} ->
        size = size + byte_size(data)

        if size > Item.max_source_size() + @max_listing_size,
          do: stop(port, :too_large),
          else: collect(port, [output, data], size, deadline, errors, progress)

      {^port, {:exit_status, status}} ->
        {:exit, status, output}
    after
      @progress_interval ->
        progress.(last_line(errors))

        if System.monotonic_time(:millisecond) > deadline,
          do: stop(port, :timeout),
          else: collect(port, output, size, deadline, errors, progress)
    end
  end

  defp stop(port, why) do
    {:os_pid, pid} = Port.info(port, :os_pid) || {:os_pid, nil}
    Port.close(port)
    if pid, do: System.cmd("/bin/sh", ["-c", "kill -9 \"$1\" 2>/dev/null", "sh", to_string(pid)])
    why
  end

  # These override the user's configuration, which otherwise counts, for example for credentials.
  defp settings do
    for setting <- [
          "core.hooksPath=/dev/null",
          "core.fsmonitor=false",
          "core.askPass=",
          "credential.interactive=false",
          "fetch.recurseSubmodules=false",
          "submodule.recurse=false",
          "fetch.writeCommitGraph=false",
          "gc.auto=0",
          "maintenance.auto=false",
          "http.lowSpeedLimit=1000",
          "http.lowSpeedTime=60"
        ],
        part <- ["-c", setting],
        do: part
  end

  defp environment do
    ssh = System.get_env("GIT_SSH_COMMAND", "ssh") <> " -oBatchMode=yes"

    dropped =
      for {name, _} <- System.get_env(),
          String.starts_with?(name, "GIT_"),
          name not in @allowed_variables,
          do: {to_charlist(name), false}

    set =
      for {name, value} <- [
            {"GIT_TERMINAL_PROMPT", "0"},
            {"GIT_ALLOW_PROTOCOL", @protocols},
            {"GIT_PROTOCOL_FROM_USER", "0"},
            {"GIT_SSH_COMMAND", ssh},
            {"GIT_NO_LAZY_FETCH", "1"},
            {"GIT_NO_REPLACE_OBJECTS", "1"},
            {"GIT_LFS_SKIP_SMUDGE", "1"},
            {"SSH_ASKPASS", "false"},
            {"LC_ALL", "C"}
          ],
          do: {to_charlist(name), to_charlist(value)}

    dropped ++ set
  end

  defp failed(place, errors) do
    reason = last_line(errors)
    PackageError.new(:git, place, "could not be fetched: git says: " <> reason, hint(reason))
  end

  # The first error: git writes advice after it.
  defp last_line(errors) do
    lines =
      with {:ok, text} <- File.read(errors),
           do: text |> String.split(~r/[\r\n]+/, trim: true),
           else: (_ -> [])

    line =
      Enum.find(lines, &String.starts_with?(&1, ["fatal:", "error:", "ERROR:"])) ||
        List.last(lines) ||
        "nothing"

    if String.valid?(line),
      do: line |> String.replace(~r/[\x{0}-\x{1F}\x{7F}-\x{9F}]/u, " ") |> String.slice(0, 200),
      else: inspect(line)
  end

  defp hint(reason) do
    cond do
      String.contains?(reason, [
        "terminal prompts disabled",
        "could not read Username",
        "Permission denied",
        "Authentication failed"
      ]) ->
        "it is private or does not exist; Skillbook does not ask for a password, " <>
          "so give git access with a credential helper or an SSH agent"

      reason =~ ~r/transport '.*' not allowed/ ->
        "supported are https, ssh and paths"

      true ->
        nil
    end
  end
end
