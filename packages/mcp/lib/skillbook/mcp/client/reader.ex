defmodule Skillbook.MCP.Client.Reader do
  @moduledoc false
  # Reads the text of a skill, or one of its files, from its server: fetched when it is needed,
  # compared with the digest, size and frontmatter that were approved, and marked with its origin.
  # A file that differs in anything is not shown.

  alias Skillbook.MCP.Client
  alias Skillbook.MCP.Client.{Error, Session, Settings, Skills, State}
  alias Skillbook.Package.Publish
  alias Skillbook.Support.External
  alias Skillbook.{Book, Entry, Frontmatter, View}

  @max_text 262_144
  @listed_files 200
  # JSON writes a byte with six at most.
  @worst_case 6
  @overhead 65_536

  @doc """
  The text of the answer to a path of `get_skill`: of a skill of a server, or one of its files.

  Returns `:other` for the path of anything else, which includes skills that the view hides.
  """
  @spec answer(View.t(), String.t()) :: {:ok, String.t()} | {:error, Error.t()} | :other
  def answer(%View{functions: functions}, _path) when functions == %{}, do: :other

  def answer(view, path) do
    with [_ | _] = servers <- servers(view),
         {:ok, entry, file} <- find(view, String.trim(path)),
         %{} = settings <- Enum.find(servers, &own?(&1, entry)) do
      settings |> Settings.called_by(view.profile) |> text(entry, file)
    else
      _ -> :other
    end
  end

  defp servers(%View{book: nil}), do: []

  defp servers(%View{book: name}) do
    case Book.find(name) do
      nil -> []
      book -> Client.settings(book)
    end
  end

  # The path of a page is the server's own only if its client made it.
  defp own?(settings, %Entry{kind: :skill, source: source, path: path}),
    do: source == settings.label and String.starts_with?(path, "mcp:#{settings.label}/skills/")

  defp own?(_settings, _entry), do: false

  defp find(view, path) do
    case View.fetch(view, path) do
      {:ok, entry} -> {:ok, entry, "SKILL.md"}
      {:error, _} -> find_file(view, String.split(path, "/"))
    end
  end

  # The longest name first.
  defp find_file(view, words) do
    Enum.find_value((length(words) - 1)..1//-1, :error, fn count ->
      {name, file} = Enum.split(words, count)

      with {:ok, entry} <- View.fetch(view, Enum.join(name, "/")),
           do: {:ok, entry, Enum.join(file, "/")},
           else: (_ -> nil)
    end)
  end

  defp text(settings, entry, path) do
    skill = State.entries(settings).skills[entry.name]

    cond do
      skill == nil or not String.contains?(entry.body, skill.digest) ->
        Session.error(
          settings,
          :changed,
          "the skill #{entry.name} has changed since it was listed; ask for it again"
        )

      not is_map_key(skill.files, path) ->
        # As an unknown path of any other skill.
        :other

      true ->
        # No file is read of a skill whose `SKILL.md` differs from the approved one.
        with {:ok, _text} <- read(settings, skill, "SKILL.md"),
             {:ok, bytes} <- read(settings, skill, path),
             do: {:ok, shown(settings, skill, path, bytes)}
    end
  end

  defp shown(settings, skill, "SKILL.md", bytes) do
    {:ok, %{body: body}} = Frontmatter.parse(bytes)
    origin = "the skill #{skill.skill} of the MCP server #{settings.label}"
    External.block(origin, body, max: @max_text) <> files(skill)
  end

  defp shown(settings, skill, path, bytes) do
    origin =
      "the file #{External.line(path)} of the skill #{skill.skill} of the MCP server " <>
        settings.label

    if byte_size(bytes) <= @max_text and String.valid?(bytes) and
         not String.contains?(bytes, "\0"),
       do: External.block(origin, bytes, max: @max_text),
       else: "#{origin} has #{byte_size(bytes)} bytes and cannot be shown as text."
  end

  defp files(skill) do
    case skill.files |> Map.keys() |> List.delete("SKILL.md") |> Enum.sort() do
      [] ->
        ""

      paths ->
        {listed, more} = Enum.split(paths, @listed_files)
        lines = Enum.map_join(listed, "\n", &("- " <> file_name(&1)))
        more = if more == [], do: "", else: "\n- and #{length(more)} more"
        "\n\n## Files\n\nRead one with `get_skill: #{skill.name}/<file>`:\n\n#{lines}#{more}"
    end
  end

  # The name of a file is a stranger's text too.
  defp file_name(path),
    do: if(path =~ ~r|\A[A-Za-z0-9._/@+-]{1,200}\z|, do: path, else: External.line(path))

  @doc "Reads a file of a skill: out of the cache by its digest, or from the server."
  @spec read(Settings.t(), Skills.t(), String.t()) :: {:ok, binary()} | {:error, Error.t()}
  def read(settings, skill, path) do
    file = Map.fetch!(skill.files, path)

    case State.file(settings, file.digest) do
      nil -> fetch(settings, skill, path, file)
      # Another skill may have had the same bytes with another frontmatter in its entry.
      bytes -> verified(settings, skill, path, file, bytes)
    end
  end

  defp fetch(settings, skill, path, file) do
    max = file.size * @worst_case + @overhead

    with {:ok, result} <-
           Session.request(settings, "resources/read", %{"uri" => file.uri}, max: max),
         {:ok, bytes} <- content(settings, skill, path, file, result),
         {:ok, bytes} <- verified(settings, skill, path, file, bytes) do
      State.put_file(settings, file.digest, bytes)
      {:ok, bytes}
    end
  end

  defp content(settings, skill, path, file, %{"contents" => contents}) when is_list(contents) do
    case Enum.filter(contents, &match?(%{"uri" => uri} when uri == file.uri, &1)) do
      [%{"text" => text}] when is_binary(text) ->
        {:ok, text}

      [%{"blob" => blob}] when is_binary(blob) ->
        with :error <- Base.decode64(blob),
             do: failed(settings, skill, path, "its content is not in Base64")

      _ ->
        failed(settings, skill, path, "the answer does not have its content")
    end
  end

  defp content(settings, skill, path, _file, _result),
    do: failed(settings, skill, path, "the answer does not have its content")

  defp verified(settings, skill, path, file, bytes) do
    digest = Publish.digest(bytes)

    cond do
      byte_size(bytes) != file.size ->
        reason = "expected #{file.size} bytes, got #{byte_size(bytes)}"
        failed(settings, skill, path, reason)

      digest != file.digest ->
        failed(settings, skill, path, "expected the digest #{file.digest}, got #{digest}")

      path == "SKILL.md" ->
        with :ok <- frontmatter(settings, skill, bytes), do: {:ok, bytes}

      true ->
        {:ok, bytes}
    end
  end

  defp frontmatter(settings, skill, bytes) do
    with true <- String.valid?(bytes),
         {:ok, %{present: true, data: data, diagnostics: found}} <- Frontmatter.parse(bytes),
         [] <- Enum.filter(found, &(&1.code == :duplicate_key)) do
      case different(data, skill.frontmatter) do
        [] ->
          :ok

        keys ->
          names = Enum.map_join(Enum.take(keys, 5), ", ", &External.line(&1, 40))

          failed(
            settings,
            skill,
            "SKILL.md",
            "expected the frontmatter that was listed; these fields differ: #{names}"
          )
      end
    else
      _ -> failed(settings, skill, "SKILL.md", "expected readable frontmatter")
    end
  end

  defp different(data, listed) do
    for key <- Enum.uniq(Map.keys(data) ++ Map.keys(listed)),
        not (is_map_key(data, key) and is_map_key(listed, key)) or data[key] != listed[key],
        do: key
  end

  # It may be stale: the next listing says so.
  defp failed(settings, skill, path, reason) do
    Client.failed(settings, skill, path, reason)

    Session.error(
      settings,
      :verification,
      "the file #{External.line(path)} of the skill #{skill.name} is not shown: #{reason}"
    )
  end
end
