defmodule Skillbook.Package.LockFile do
  @moduledoc false
  # Reads and writes `skills.lock.json`: the installed skills of a folder with their sources,
  # hashes and accepted findings.

  alias Skillbook.Support.{JSON, ReadFile}
  alias Skillbook.{Document, DocumentError, PackageError}

  @file_name "skills.lock.json"
  @version 1
  @max_size 16 * 1024 * 1024

  # In the order of the file.
  @fields ~w(kind source branch tag asked_commit commit path digest hash installed) ++
            ~w(executable files accepted)

  @optional ~w(branch tag asked_commit commit digest)

  @kinds %{"folder" => :folder, "archive" => :archive, "git" => :git, "site" => :site}

  @type entry :: %{String.t() => term()}

  @doc "Returns the entries by name; an empty map if the file does not exist."
  @spec read(Path.t()) :: {:ok, %{String.t() => entry()}} | {:error, PackageError.t()}
  def read(folder) do
    path = Path.join(folder, @file_name)

    with {:ok, %{type: :regular, size: size}} when size <= @max_size <- File.lstat(path),
         {:ok, text} <- ReadFile.read(path, @max_size),
         {:ok, value} <- JSON.decode(text) do
      check(path, value)
    else
      {:error, :enoent} -> {:ok, %{}}
      {:error, %{__exception__: true} = error} -> broken(path, Exception.message(error))
      {:error, reason} -> PackageError.io(path, reason)
      {:ok, _} -> broken(path, "expected a file of up to #{@max_size} bytes")
    end
  end

  defp check(path, %{"version" => @version, "skills" => %{} = skills}) do
    case Enum.find(skills, fn {name, entry} -> not (name?(name) and entry?(entry)) end) do
      nil -> {:ok, skills}
      {name, _} -> broken(path, "the entry #{inspect(name)} is not valid")
    end
  end

  defp check(path, %{"version" => version}) when version != @version,
    do: broken(path, "expected version #{@version}, got: #{inspect(version)}")

  defp check(path, _), do: broken(path, "expected an object with `version` and `skills`")

  # A name becomes a path, so no other characters are allowed.
  defp name?(name), do: name =~ ~r/\A[a-z0-9]+(-[a-z0-9]+)*\z/

  defp entry?(%{"kind" => kind, "source" => source, "path" => path, "hash" => hash} = entry) do
    is_map_key(@kinds, kind) and is_binary(source) and is_binary(path) and is_binary(hash) and
      is_map(entry["files"]) and texts?(entry["executable"]) and texts?(entry["accepted"]) and
      Enum.all?(@optional, &(is_nil(entry[&1]) or is_binary(entry[&1]))) and
      (kind != "git" or is_binary(entry["commit"]))
  end

  defp entry?(_), do: false

  defp texts?(values), do: is_list(values) and Enum.all?(values, &is_binary/1)

  defp broken(path, reason),
    do:
      PackageError.new(
        :lock,
        path,
        "cannot be read: #{reason}",
        "restore it from a backup, or move it away and install again"
      )

  @doc "Writes an entry, or deletes it if it is `nil`. Other entries stay."
  @spec put(Path.t(), String.t(), entry() | nil) :: :ok | {:error, PackageError.t()}
  def put(folder, name, entry) do
    with {:ok, entries} <- read(folder) do
      entries = if entry, do: Map.put(entries, name, entry), else: Map.delete(entries, name)

      case Document.replace(folder, @file_name, write(entries)) do
        {:ok, _} ->
          :ok

        {:error, %DocumentError{} = error} ->
          PackageError.new(:io, folder, "cannot be written: " <> Exception.message(error))
      end
    end
  end

  @doc "The source of an entry, as `Skillbook.Package.Origin.open/4` takes it."
  @spec origin(entry()) :: {:folder | :archive | :git | :site, String.t()}
  def origin(%{"kind" => kind, "source" => source}), do: {Map.fetch!(@kinds, kind), source}

  @doc "The revision that was requested at the installation: at most one branch, tag or commit."
  def asked(entry) do
    for {key, field} <- [branch: "branch", tag: "tag", commit: "asked_commit"],
        entry[field],
        into: %{},
        do: {key, entry[field]}
  end

  # One line per field, so that diffs are readable.
  defp write(entries) do
    skills =
      for {name, entry} <- Enum.sort(entries),
          do: ["\n    ", JSON.encode(name), ": {", fields(entry), "\n    }"]

    [
      "{\n  \"version\": #{@version},\n  \"skills\": {",
      Enum.intersperse(skills, ","),
      "\n  }\n}\n"
    ]
  end

  defp fields(entry) do
    for(
      field <- @fields,
      Map.has_key?(entry, field) and entry[field] != nil,
      do: ["\n      ", JSON.encode(field), ": ", value(entry[field])]
    )
    |> Enum.intersperse(",")
  end

  defp value(%{} = map) do
    lines =
      for {key, value} <- Enum.sort(map),
          do: ["\n        ", JSON.encode(key), ": ", JSON.encode(value)]

    ["{", Enum.intersperse(lines, ","), "\n      }"]
  end

  defp value([_ | _] = list),
    do: [
      "[",
      list |> Enum.map(&["\n        ", JSON.encode(&1)]) |> Enum.intersperse(","),
      "\n      ]"
    ]

  defp value(other), do: JSON.encode(other)
end
