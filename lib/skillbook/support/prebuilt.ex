defmodule Skillbook.Support.Prebuilt do
  @moduledoc false
  # Downloads native libraries that were built before, for `mix compile.skillbook_nif`.
  #
  # `bin/prebuild` makes the files, and writes their digests to `native/prebuilt.sha256`, which is
  # in version control: whoever serves the files cannot change them. The name of a file has a
  # digest of its sources, so a checkout with other sources has no prebuilt library, and cargo
  # builds it.
  #
  # `rustler_precompiled` does this for one library of a package from Hex, and fetches its digests
  # from where the files are. Here the sources decide, there are several libraries, and no package
  # of Hex is needed.

  # Not applications of Skillbook: only Mix downloads.
  @compile {:no_warn_undefined, Mix}

  # Milliseconds for one file.
  @timeout 120_000

  @doc """
  The place that files are downloaded from, without the last slash: the variable
  SKILLBOOK_PREBUILT, or the setting `:prebuilt` of the application; `nil` if there is none.
  """
  @spec url() :: String.t() | nil
  def url do
    case System.get_env("SKILLBOOK_PREBUILT") || Application.get_env(:skillbook, :prebuilt) do
      unset when unset in [nil, ""] -> nil
      url -> String.trim_trailing(url, "/")
    end
  end

  @doc """
  The target of this virtual machine, as Rust names it.

      iex> Skillbook.Support.Prebuilt.target("x86_64-pc-linux-gnu")
      "x86_64-unknown-linux-gnu"
      iex> Skillbook.Support.Prebuilt.target("aarch64-alpine-linux-musl")
      "aarch64-unknown-linux-musl"
      iex> Skillbook.Support.Prebuilt.target("aarch64-apple-darwin23.4.0")
      "aarch64-apple-darwin"
      iex> Skillbook.Support.Prebuilt.target("riscv64-unknown-freebsd")
      "riscv64-unknown-freebsd"
  """
  @spec target(String.t()) :: String.t()
  def target(architecture \\ to_string(:erlang.system_info(:system_architecture))) do
    [cpu | _] = String.split(architecture, "-")

    cond do
      architecture =~ "darwin" -> "#{cpu}-apple-darwin"
      architecture =~ "linux" and architecture =~ "musl" -> "#{cpu}-unknown-linux-musl"
      architecture =~ "linux" -> "#{cpu}-unknown-linux-gnu"
      true -> architecture
    end
  end

  @doc "The name of a file: that of the library or program, its sources and its target."
  @spec name(String.t(), String.t(), String.t()) :: String.t()
  def name(file, sources, target), do: "#{Path.rootname(file)}-#{sources}-#{target}"

  @doc "A digest of sources: of their paths below the root and of their content."
  @spec sources(Path.t(), [Path.t()]) :: String.t()
  def sources(root, paths) do
    text =
      for path <- Enum.sort(paths), File.regular?(path) do
        [Path.relative_to(path, root), "\n", digest(File.read!(path)), "\n"]
      end

    text |> digest() |> binary_part(0, 16)
  end

  @doc """
  Fetches files by their names, from the cache or the place. Returns their paths, `:unknown` if
  one of them is not among the digests, or why one cannot be downloaded. Raises if a file has
  another digest.
  """
  @spec fetch(String.t(), Path.t(), [String.t()]) ::
          {:ok, [Path.t()]} | :unknown | {:error, String.t()}
  def fetch(url, root, names) do
    digests = digests(Path.join(root, "native/prebuilt.sha256"))

    if Enum.all?(names, &is_map_key(digests, &1)) do
      Enum.reduce_while(names, {:ok, []}, fn name, {:ok, paths} ->
        case cached(url, name, digests[name]) do
          {:ok, path} -> {:cont, {:ok, paths ++ [path]}}
          {:error, reason} -> {:halt, {:error, reason}}
        end
      end)
    else
      :unknown
    end
  end

  # As `sha256sum` writes them.
  defp digests(path) do
    case File.read(path) do
      {:ok, text} ->
        for line <- String.split(text, "\n", trim: true),
            [digest, name] <- [String.split(line, "  ", parts: 2)],
            into: %{},
            do: {name, digest}

      {:error, _} ->
        %{}
    end
  end

  defp cached(url, name, digest) do
    path = Path.join(:filename.basedir(:user_cache, "skillbook"), name)

    with {:ok, bytes} <- File.read(path), ^digest <- digest(bytes) do
      {:ok, path}
    else
      _missing_or_damaged -> download(url, name, digest, path)
    end
  end

  defp download(url, name, digest, path) do
    from = url <> "/" <> name

    with {:ok, bytes} <- get(from) do
      check!(from, digest, digest(bytes))
      File.mkdir_p!(Path.dirname(path))
      # Another compilation may do the same at the same time.
      temporary = "#{path}.#{System.pid()}"
      File.write!(temporary, bytes)
      # It may be a program.
      File.chmod!(temporary, 0o755)
      File.rename!(temporary, path)
      {:ok, path}
    end
  end

  defp check!(_from, digest, digest), do: :ok

  defp check!(from, expected, got) do
    Mix.raise("""
    expected #{from} to have the SHA-256 #{expected},
    got #{got}. It is not the file that was published, and nothing of it is used.
    Tell whoever serves it. To build with cargo instead, unset SKILLBOOK_PREBUILT and the
    setting `config :skillbook, prebuilt: …`.
    """)
  end

  defp get(url) do
    case Enum.find([:inets, :ssl], &(not started?(&1))) do
      nil -> request(url)
      missing -> {:error, "#{url} cannot be downloaded without Erlang/OTP's #{missing}"}
    end
  end

  # From Elixir 1.15 on, Mix hides the applications that the project does not list.
  defp started?(application) do
    if function_exported?(Mix, :ensure_application!, 1),
      do: apply(Mix, :ensure_application!, [application])

    match?({:ok, _}, Application.ensure_all_started(application))
  end

  defp request(url) do
    options = [timeout: @timeout, connect_timeout: 15_000] ++ tls(url)

    request = [:get, {String.to_charlist(url), []}, options, [body_format: :binary]]

    case apply(:httpc, :request, request) do
      {:ok, {{_, 200, _}, _headers, body}} -> {:ok, body}
      {:ok, {{_, status, _}, _headers, _body}} -> {:error, "#{url} answers with status #{status}"}
      {:error, reason} -> {:error, "#{url} cannot be reached: #{reason(reason)}"}
    end
  end

  defp tls("https:" <> _) do
    match = :public_key.pkix_verify_hostname_match_fun(:https)

    [
      ssl: [
        verify: :verify_peer,
        depth: 3,
        cacerts: :public_key.cacerts_get(),
        customize_hostname_check: [match_fun: match]
      ]
    ]
  end

  defp tls(_url), do: []

  defp reason({:failed_connect, [_to, {:inet, _, reason}]}) when is_atom(reason),
    do: to_string(:inet.format_error(reason))

  defp reason(reason), do: inspect(reason)

  defp digest(bytes), do: :sha256 |> :crypto.hash(bytes) |> Base.encode16(case: :lower)
end
