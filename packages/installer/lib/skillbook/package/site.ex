defmodule Skillbook.Package.Site do
  @moduledoc false
  # A website that publishes skills in the Agent Skills Discovery format: reads its index, and
  # fetches the files of one skill. Version 0.2.0 has one artifact per skill with its digest;
  # version 0.1.0 lists files without digests.
  #
  # A site is a stranger: each part of an index is checked here, and the files of a skill are
  # checked like those of any source. The index must come from the host that the user named. The
  # artifacts may be elsewhere, since their digests are in the index.

  alias Skillbook.HTTP.Addresses
  alias Skillbook.Package.Archive.{Tar, Zip}
  alias Skillbook.Package.{Item, Publish}
  alias Skillbook.Support.{JSON, UntilError}
  alias Skillbook.{HTTP, PackageError}

  @type row :: %{
          name: String.t(),
          description: String.t(),
          problem: String.t() | nil,
          digest: String.t() | nil,
          fetch: {:page | :archive, String.t()} | {:files, [{String.t(), String.t()}]} | nil
        }

  @typedoc "An index: its rows by name. Rows that share a name have the same problem."
  @type index :: %{url: String.t(), version: String.t(), rows: %{String.t() => row()}}

  @folders [".well-known/agent-skills", ".well-known/skills"]
  @max_redirects 5
  @max_index_size 32 * 1024 * 1024
  @max_artifact_size 64 * 1024 * 1024
  @max_skills 50_000
  @max_description 1024
  @max_files 1_000
  @not_found [404, 410]
  # For an index, and for all files of a skill.
  @timeout :timer.minutes(5)
  @inside "has an address in the index that is in a private network"

  @doc """
  Whether a source is a site: an address without a path, or with the path of an index. A fragment
  names a skill.
  """
  @spec address?(String.t()) :: boolean()
  def address?(source) do
    with true <- String.printable?(source) and not (source =~ ~r/[\s\\]/),
         {:ok, %URI{scheme: scheme, host: host, path: path}}
         when scheme in ["http", "https"] and host not in [nil, ""] <- URI.new(source) do
      path in [nil, "", "/"] or path =~ ~r{/\.well-known/(agent-)?skills(/|/index\.json)?\z}
    else
      _ -> false
    end
  end

  @doc "The address that the lock file records, and the name of a skill from the fragment."
  @spec identify(String.t()) :: {:ok, {String.t(), String.t() | nil}} | {:error, PackageError.t()}
  def identify(source) do
    {:ok, uri} = URI.new(source)

    cond do
      uri.userinfo != nil or uri.query != nil ->
        # They may hold secrets, and the lock file records the address.
        place = URI.to_string(%{uri | userinfo: nil, query: nil, fragment: nil})
        PackageError.new(:source, place, "is given with a user name or a query", "leave them out")

      uri.scheme == "http" and not loopback?(uri.host) ->
        PackageError.new(:source, source, "is not an https address", "write https://#{uri.host}")

      uri.port not in 1..65_535 ->
        PackageError.new(:source, source, "has a port that does not exist")

      true ->
        path = (uri.path || "") |> String.replace_suffix("/index.json", "")
        place = %{uri | path: nil, host: String.downcase(uri.host), fragment: nil}
        place = URI.to_string(place) <> String.trim_trailing(path, "/")
        {:ok, {place, if(uri.fragment == "", do: nil, else: uri.fragment)}}
    end
  end

  defp loopback?(host), do: host in ["localhost", "127.0.0.1", "::1"]

  # The index

  @doc """
  Fetches the index of a site. Without a path in the address, both folders of the format are
  tried, the current one first.
  """
  @spec index(String.t(), keyword()) :: {:ok, index()} | {:error, PackageError.t()}
  def index(place, options) do
    options[:progress].("fetching the index of #{place}")

    urls =
      if place =~ ~r{/\.well-known/(agent-)?skills\z},
        do: [place <> "/index.json"],
        else: for(folder <- @folders, do: place <> "/" <> folder <> "/index.json")

    read_index(urls, place, with_deadline(options))
  end

  defp with_deadline(options), do: Keyword.put(options, :deadline, now() + @timeout)
  defp now, do: System.monotonic_time(:millisecond)

  defp read_index([], place, _options) do
    PackageError.new(
      :source,
      place,
      "publishes no skills: it has no /.well-known/agent-skills/index.json",
      "for a git repository write its whole address, for example https://example.com/skills.git"
    )
  end

  defp read_index([url | urls], place, options) do
    case get(url, @max_index_size, :same_host, options) do
      {:ok, 200, _headers, text, from} -> parse(text, from)
      {:ok, status, _, _, _} when status in @not_found -> read_index(urls, place, options)
      {:ok, status, _, _, _} -> status_error(url, status)
      {:error, %PackageError{}} = error -> error
    end
  end

  defp parse(text, url) do
    case JSON.decode(text) do
      {:ok, %{"skills" => rows} = index} when is_list(rows) and length(rows) <= @max_skills ->
        with {:ok, version} <- version(index, url),
             do: {:ok, %{url: url, version: version, rows: rows(rows, version, url)}}

      {:ok, %{"skills" => rows}} when is_list(rows) ->
        broken(url, "has #{length(rows)} skills, and may have #{@max_skills}", :limit)

      {:ok, _other} ->
        broken(url, "is not an index of skills: expected an object with a list `skills`")

      {:error, error} ->
        if text =~ ~r/\A\s*</,
          do: broken(url, "is not an index of skills: expected JSON, got a page of HTML"),
          else: broken(url, "is not an index of skills: #{Exception.message(error)}")
    end
  end

  # An index without a schema is of the first version.
  defp version(%{"$schema" => schema}, url) do
    if schema == Publish.schema() do
      {:ok, "0.2.0"}
    else
      got = inspect(schema, limit: 5, printable_limit: 200)
      reason = "has an unknown format: expected the schema #{Publish.schema()}, got: #{got}"
      broken(url, reason)
    end
  end

  defp version(_index, _url), do: {:ok, "0.1.0"}

  defp broken(url, reason, kind \\ :source), do: PackageError.new(kind, url, reason)

  defp rows(rows, version, url) do
    rows = Enum.map(rows, &row(&1, version, url))
    count = rows |> Enum.map(& &1.name) |> Enum.frequencies()

    for row <- rows, into: %{} do
      times = count[row.name]
      {row.name, if(times > 1, do: bad(row, "is in the index #{times} times"), else: row)}
    end
  end

  # A row with a problem stays in the list, so that the user sees it.
  defp row(%{"name" => name} = fields, version, url) when is_binary(name) do
    description = if is_binary(fields["description"]), do: fields["description"], else: ""
    row = %{name: name, description: description, problem: nil, digest: nil, fetch: nil}

    cond do
      not Publish.name?(name) ->
        shown = inspect(name, printable_limit: 80)

        bad(
          %{row | name: shown},
          "has a name in the index that is not of small letters, digits and hyphens"
        )

      description == "" ->
        bad(row, "has no description in the index")

      too_long?(description) ->
        bad(row, "has a description of more than #{@max_description} characters in the index")

      version == "0.2.0" ->
        artifact(row, fields, url)

      true ->
        files(row, fields["files"], url)
    end
  end

  defp row(_other, _version, _url) do
    row = %{name: "?", description: "", problem: nil, digest: nil, fetch: nil}
    bad(row, "has no name in the index")
  end

  # In code points: one character that is shown may have any number of them.
  defp too_long?(text) do
    byte_size(text) > 4 * @max_description or
      length(String.codepoints(text)) > @max_description
  end

  defp bad(row, problem), do: %{row | problem: row.problem || problem, fetch: nil}

  defp artifact(row, fields, url) do
    kind = %{"skill-md" => :page, "archive" => :archive}[fields["type"]]
    digest = fields["digest"]

    cond do
      kind == nil ->
        type = inspect(fields["type"], limit: 5, printable_limit: 80)
        bad(row, ~s(has the type #{type} in the index; expected "skill-md" or "archive"))

      not (is_binary(digest) and digest =~ ~r/\Asha256:[0-9a-f]{64}\z/) ->
        bad(row, "has no valid digest in the index; expected sha256: and 64 hexadecimal digits")

      true ->
        case resolve(url, fields["url"]) do
          {:ok, to} -> %{row | digest: digest, fetch: {kind, to}}
          {:error, reason} -> bad(row, reason)
        end
    end
  end

  # Version 0.1.0 has relative paths of files below the folder of the skill.
  defp files(row, paths, url) when is_list(paths) and paths != [] do
    paths = Enum.map(paths, &if(&1 in ["skill.md", "Skill.md"], do: "SKILL.md", else: &1))

    cond do
      length(paths) > @max_files ->
        bad(row, "has #{length(paths)} files in the index, and may have #{@max_files}")

      not Enum.all?(paths, &(is_binary(&1) and match?(:ok, Item.inside(&1)))) ->
        bad(row, "has a file in the index whose path leads out of the skill")

      "SKILL.md" not in paths ->
        bad(row, "has no SKILL.md among its files in the index")

      true ->
        case Item.check(for path <- paths, do: %Item{path: path, type: :file}) do
          :ok ->
            files = for path <- paths, do: {path, file_url(url, row.name, path)}
            %{row | fetch: {:files, files}}

          {:error, error} ->
            bad(row, "has a file in the index that is refused: #{Exception.message(error)}")
        end
    end
  end

  defp files(row, _paths, _url), do: bad(row, "has no list of files in the index")

  defp file_url(url, name, path) do
    path =
      path
      |> String.split("/")
      |> Enum.map_join("/", &URI.encode(&1, fn c -> URI.char_unreserved?(c) end))

    url |> URI.merge(name <> "/" <> path) |> URI.to_string()
  end

  # As in RFC 3986, from the address of the index. Only a site on this machine may name addresses
  # without https, and only on this machine. A site elsewhere must not make this machine ask
  # others in its own network.
  defp resolve(url, to) when is_binary(to) and to != "" do
    with true <- String.printable?(to) and not (to =~ ~r/[\s\\]/),
         {:ok, relative} <- URI.new(to),
         %URI{scheme: scheme, host: host, userinfo: nil} = uri when host not in [nil, ""] <-
           URI.merge(URI.parse(url), relative) do
      cond do
        scheme != "https" and
            not (scheme == "http" and loopback?(host) and url =~ ~r{\Ahttp://}) ->
          {:error, "has an address in the index that is not https"}

        Addresses.inside?(host) and not Addresses.inside?(URI.parse(url).host) ->
          {:error, @inside}

        true ->
          {:ok, URI.to_string(%{uri | fragment: nil})}
      end
    else
      _ -> {:error, "has an address in the index that cannot be used"}
    end
  rescue
    ArgumentError -> {:error, "has an address in the index that cannot be used"}
  end

  defp resolve(_url, _to), do: {:error, "has no address in the index"}

  # Files

  @doc """
  Fetches the files of a skill of a site and checks the digest. The files are not checked yet.
  """
  @spec fetch(row(), String.t(), keyword()) :: {:ok, [Item.t()]} | {:error, PackageError.t()}
  def fetch(%{problem: problem, name: name}, _place, _options) when problem != nil,
    do: PackageError.new(:skill, name, problem)

  def fetch(row, place, options),
    do: fetch_files(row, with_deadline([named: URI.parse(place).host] ++ options))

  defp fetch_files(%{fetch: {:files, files}}, options) do
    result =
      UntilError.reduce(files, {[], @max_artifact_size}, fn {path, url}, {done, left} ->
        case download(url, max(left, 1), options) do
          {:ok, bytes, _headers} when byte_size(bytes) <= left ->
            item = %Item{path: path, type: :file, size: byte_size(bytes), content: bytes}
            {:ok, {[item | done], left - byte_size(bytes)}}

          {:ok, _bytes, _headers} ->
            PackageError.new(:limit, url, "exceeds the #{@max_artifact_size} bytes of a skill")

          {:error, error} ->
            {:error, error}
        end
      end)

    with {:ok, {items, _left}} <- result, do: {:ok, Enum.reverse(items)}
  end

  defp fetch_files(%{fetch: {kind, url}} = row, options) do
    with {:ok, bytes, headers} <- download(url, @max_artifact_size, options),
         :ok <- check_digest(bytes, row, url) do
      if kind == :page,
        do: {:ok, [%Item{path: "SKILL.md", type: :file, size: byte_size(bytes), content: bytes}]},
        else: unpack(bytes, headers, url)
    end
  end

  defp check_digest(bytes, row, url) do
    got = Publish.digest(bytes)

    if got == row.digest do
      :ok
    else
      PackageError.new(
        :hash,
        row.name,
        "is not the content that the index names: expected #{row.digest}, got #{got} from #{url}",
        "try again later; if it stays, tell the publisher"
      )
    end
  end

  defp download(url, limit, options) do
    options[:progress].("fetching #{url}")

    case get(url, limit, :any_host, options) do
      {:ok, 200, headers, bytes, _url} -> {:ok, bytes, headers}
      {:ok, status, _, _, _} -> status_error(url, status)
      error -> error
    end
  end

  # A book does, for those without a token.
  defp status_error(url, 401) do
    PackageError.new(
      :source,
      url,
      "could not be fetched: the server returned the status 401, since it answers only those " <>
        "that it knows",
      "a book answers everyone with `skillbook serve --publish PROFILE`"
    )
  end

  defp status_error(url, status) do
    PackageError.new(
      :source,
      url,
      "could not be fetched: the server returned the status #{status}"
    )
  end

  # The server's type decides, then the name; RFC of the format.
  defp unpack(bytes, headers, url) do
    type =
      headers
      |> Map.get("content-type", [""])
      |> hd()
      |> String.split(";")
      |> hd()
      |> String.trim()

    path = url |> URI.parse() |> Map.get(:path) |> to_string() |> String.downcase()

    result =
      cond do
        type == "application/zip" -> Zip.read(bytes, url)
        type in ["application/gzip", "application/x-gzip"] -> Tar.read(bytes, url)
        String.ends_with?(path, ".zip") -> Zip.read(bytes, url)
        String.ends_with?(path, [".tar.gz", ".tgz"]) -> Tar.read(bytes, url)
        true -> PackageError.new(:archive, url, "is neither a .tar.gz nor a .zip archive")
      end

    with {:ok, items} <- result do
      if Enum.any?(items, &(&1.path == "SKILL.md" and &1.type == :file)),
        do: {:ok, items},
        else: PackageError.new(:archive, url, "has no SKILL.md at its top")
    end
  end

  # Requests

  # Redirects are followed here, because those of an index must stay on the host that the user
  # trusts. `:compressed` is off: a digest is over the bytes as the server stores them.
  defp get(url, limit, hosts, options) do
    http =
      [max_body: limit]
      |> Keyword.merge(options[:http] || [])
      |> Keyword.merge(redirects: 0, compressed: false)

    follow(url, url, {http, options}, hosts, @max_redirects)
  end

  defp follow(url, first, http, hosts, left) do
    case HTTP.request(url, at_address(url, hosts, http)) do
      {:ok, %{status: status, headers: %{"location" => [to | _]}}}
      when status in [301, 302, 303, 307, 308] ->
        with {:ok, url} <- redirect(url, to, first, hosts, left),
             do: follow(url, first, http, hosts, left - 1)

      {:ok, response} ->
        {:ok, response.status, response.headers, response.body, url}

      {:error, error} ->
        PackageError.new(:source, first, "could not be fetched: #{Exception.message(error)}")
    end
  end

  # The host that the user named may be anywhere. If it is on the internet, the others that it
  # names must be there too, whatever their names look like.
  defp at_address(url, hosts, {http, options}) do
    named = options[:named]
    own? = hosts == :same_host or URI.parse(url).host == named or Addresses.inside?(named)
    left = max(options[:deadline] - now(), 1)

    http
    |> Keyword.put_new(:addresses, if(own?, do: :any, else: :public))
    |> Keyword.update(:timeout, left, &min(&1, left))
  end

  defp redirect(_url, _to, first, _hosts, 0),
    do:
      PackageError.new(
        :source,
        first,
        "could not be fetched: there are more than #{@max_redirects} redirects"
      )

  defp redirect(url, to, first, hosts, _left) do
    case resolve(url, to) do
      {:ok, next} ->
        if hosts == :any_host or host(next) == host(first) do
          {:ok, next}
        else
          host = authority(next)
          hint = "if you trust that host, install from https://#{host}"
          PackageError.new(:source, first, "redirects to another host, #{host}", hint)
        end

      {:error, @inside} ->
        PackageError.new(:source, first, "redirects to an address in a private network")

      {:error, _reason} ->
        PackageError.new(
          :source,
          first,
          "redirects to an address that is not https or cannot be used"
        )
    end
  end

  defp authority(url) do
    %{host: host, port: port} = URI.parse(url)
    host = if host =~ ":", do: "[#{host}]", else: host
    if port == 443, do: host, else: "#{host}:#{port}"
  end

  defp host(url) do
    uri = URI.parse(url)
    {uri.scheme, uri.host |> to_string() |> String.downcase(), uri.port}
  end
end
