defmodule Skillbook.MCP.Client.Approvals do
  @moduledoc false
  # The decisions of operators about the tools and skills of servers, each with the digest of all
  # that was approved or refused, for one server and place: an approval for one server is none for
  # another at the same label.
  #
  # They are in the database, where all nodes see them. A book without one keeps them in the lock
  # file of the source, or in the memory of the client. A lock file is taken over into a database
  # that has no decisions about the server.

  require Logger

  alias Skillbook.{Book, Document}
  alias Skillbook.MCP.Client.{ApprovalTable, Settings}
  alias Skillbook.Store.Follower
  alias Skillbook.Support.{JSON, PrivateFile, ReadFile}

  @version 1
  @max_size 16 * 1024 * 1024
  @kinds [approved: "approved", refused: "refused"]

  @typedoc "The lock file does not tell by whom and when."
  @type decision :: %{
          digest: String.t(),
          decision: :approved | :refused,
          by: String.t() | nil,
          at: DateTime.t() | nil
        }

  @typedoc "Decisions by key: `tool:NAME` or `skill:URI`."
  @type t :: %{String.t() => decision()}

  @doc "The decisions about a server for a client that starts; takes those of a lock file over."
  @spec start(Settings.t()) :: {:ok, t()} | {:error, String.t()}
  def start(settings) do
    with {:ok, none} when none == %{} <- load(settings),
         sql when sql != nil <- sql(settings),
         {:ok, locked} when locked != %{} <- from_file(settings) do
      take_over(sql, settings, locked)
    else
      nil -> {:ok, %{}}
      other -> other
    end
  end

  # Another node may do the same.
  defp take_over(sql, settings, locked) do
    now = now(settings)
    locked = Map.new(locked, fn {key, one} -> {key, %{one | by: "a lock file", at: now}} end)
    fun = fn stored -> if stored == %{}, do: locked, else: %{} end

    with {:ok, {all, count}} <- update(sql, settings, fun) do
      if count > 0 do
        Logger.info(
          "the book #{inspect(settings.book)} has taken the approvals of the MCP server " <>
            "#{settings.label} from #{settings.lock} into its database (#{count})"
        )
      end

      {:ok, all}
    end
  end

  @doc "The decisions about a server. A file that cannot be read approves nothing."
  @spec load(Settings.t()) :: {:ok, t()} | {:error, String.t()}
  def load(settings) do
    case sql(settings) do
      nil -> from_file(settings)
      sql -> ApprovalTable.list(sql, settings) |> text("read")
    end
  end

  @doc """
  Writes the decisions about a server that `fun` makes of the stored ones, and returns all of
  them. `known` are those that the client has in its memory.
  """
  @spec save(Settings.t(), t(), (t() -> t())) :: {:ok, t()} | {:error, String.t()}
  def save(settings, known, fun) do
    case {sql(settings), settings.lock} do
      {nil, nil} -> {:ok, Map.merge(known, fun.(known))}
      {nil, _path} -> to_file(settings, fun)
      {sql, _path} -> with {:ok, {all, _count}} <- update(sql, settings, fun), do: {:ok, all}
    end
  end

  @doc "The time of a decision."
  @spec now(Settings.t()) :: DateTime.t()
  def now(settings),
    do: settings.book |> Book.fetch!() |> Book.now() |> DateTime.truncate(:second)

  # The database

  defp sql(settings), do: settings.book |> Book.fetch!() |> Book.sql()

  defp update(sql, settings, fun) do
    with {:ok, _} = updated <- ApprovalTable.update(sql, settings, fun) |> text("written") do
      Follower.changed(settings.book)
      updated
    end
  end

  defp text({:error, error}, done),
    do: {:error, "its approvals cannot be #{done}: " <> Exception.message(error)}

  defp text(other, _done), do: other

  # The file

  defp from_file(%{lock: nil}), do: {:ok, %{}}

  defp from_file(settings),
    do: with({:ok, servers} <- read(settings.lock), do: {:ok, decisions(servers, settings)})

  defp decisions(servers, settings) do
    place = Settings.place_text(settings)

    with %{"place" => ^place} = server <- servers[settings.label] do
      for {decision, name} <- @kinds, {key, digest} <- server[name] || %{}, into: %{} do
        {key, %{digest: digest, decision: decision, by: nil, at: nil}}
      end
    else
      _ -> %{}
    end
  end

  # The decisions of other servers stay.
  defp to_file(settings, fun) do
    # Several servers may share the file.
    :global.trans({{__MODULE__, settings.lock}, self()}, fn ->
      with {:ok, servers} <- read(settings.lock) do
        stored = decisions(servers, settings)
        new = Map.new(fun.(stored), fn {key, one} -> {key, %{one | by: nil, at: nil}} end)
        all = Map.merge(stored, new)
        place = Settings.place_text(settings)

        of = fn kind ->
          for {key, %{decision: ^kind} = one} <- all, into: %{}, do: {key, one.digest}
        end

        server = for {kind, name} <- @kinds, into: %{"place" => place}, do: {name, of.(kind)}

        with :ok <- write(settings.lock, Map.put(servers, settings.label, server)), do: {:ok, all}
      end
    end)
  end

  defp read(path) do
    with {:ok, %{type: :regular, size: size}} when size <= @max_size <- File.stat(path),
         {:ok, text} <- ReadFile.read(path, @max_size),
         {:ok, %{"version" => @version, "servers" => %{} = servers}} <- JSON.decode(text),
         true <- Enum.all?(servers, fn {_label, server} -> server?(server) end) do
      {:ok, servers}
    else
      {:error, :enoent} -> {:ok, %{}}
      {:error, reason} when is_atom(reason) -> broken(path, :file.format_error(reason))
      {:error, error} -> broken(path, Exception.message(error))
      _ -> broken(path, "expected a lock file of MCP servers, version #{@version}")
    end
  end

  defp server?(%{"place" => place, "approved" => approved} = server),
    do: is_binary(place) and digests?(approved) and digests?(server["refused"] || %{})

  defp server?(_server), do: false

  defp digests?(%{} = digests), do: Enum.all?(digests, fn {_key, digest} -> is_binary(digest) end)
  defp digests?(_other), do: false

  defp broken(path, reason), do: {:error, "the lock file #{path} cannot be read: #{reason}"}

  defp write(path, servers) do
    lines =
      for {label, server} <- Enum.sort(servers) do
        refused = server["refused"] || %{}

        [
          "\n    ",
          JSON.encode(label),
          ": {\n      \"place\": ",
          JSON.encode(server["place"]),
          digests("approved", server["approved"]),
          if(refused != %{}, do: digests("refused", refused), else: ""),
          "\n    }"
        ]
      end

    text = [
      "{\n  \"version\": #{@version},\n  \"servers\": {",
      Enum.intersperse(lines, ","),
      "\n  }\n}\n"
    ]

    with :ok <- PrivateFile.mkdir_p(Path.dirname(path)),
         {:ok, _path} <- Document.replace(Path.dirname(path), Path.basename(path), text) do
      :ok
    else
      {:error, reason} when is_atom(reason) ->
        {:error, "the lock file #{path} cannot be written: #{:file.format_error(reason)}"}

      {:error, error} ->
        {:error, "the lock file #{path} cannot be written: #{Exception.message(error)}"}
    end
  end

  defp digests(name, digests) do
    lines =
      for {key, digest} <- Enum.sort(digests),
          do: ["\n        ", JSON.encode(key), ": ", JSON.encode(digest)]

    [
      ",\n      ",
      JSON.encode(name),
      ": {",
      Enum.intersperse(lines, ","),
      if(lines == [], do: "}", else: "\n      }")
    ]
  end
end
