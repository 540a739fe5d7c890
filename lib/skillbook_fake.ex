# A stand-in for the facade while the command line is written; dropped at the merge.
defmodule Skillbook.Entry do
  @moduledoc false
  defstruct [
    :name,
    :kind,
    :domain,
    :title,
    :description,
    :handler,
    :usage,
    :path,
    :source,
    :schedule,
    :timezone,
    :effects,
    tags: [],
    labels: [],
    aliases: [],
    requires: [],
    allowed_tools: [],
    include_in_prompt: true,
    data: %{},
    body: ""
  ]
end

defmodule Skillbook.Profile do
  @moduledoc false
  defstruct [:id, :role, grants: [], skills: :all, tools: :all]
end

defmodule Skillbook.Result do
  @moduledoc false
  defstruct [:status, :content, :data, :name, :command, :error, :duration, effects: [], metadata: %{}]
end

defmodule Skillbook.Report do
  @moduledoc false
  defstruct text: "", results: [], incomplete: []

  defimpl String.Chars do
    def to_string(report),
      do: Enum.map_join(report.results, "\n", &"<result command=\"#{&1.name}\">#{&1.content}</result>")
  end
end

defmodule Skillbook.UnknownSkillError do
  @moduledoc false
  defexception [:name, suggestions: []]

  def message(e) do
    "unknown skill `#{e.name}`" <>
      if(e.suggestions == [],
        do: "",
        else: "; did you mean #{Enum.map_join(e.suggestions, ", ", &"`#{&1}`")}?"
      )
  end
end

defmodule Skillbook.CommandError do
  @moduledoc false
  defexception [:kind]
  def message(e), do: "#{e.kind}"
end

defmodule Skillbook.Command do
  @moduledoc false
  defstruct [:name, :raw, flags: %{}, args: []]

  def parse(line) do
    heredoc = Regex.run(~r/<<'?(\w+)'?/, line)

    cond do
      heredoc && !(line =~ ~r/\n#{Enum.at(heredoc, 1)}\s*\z/) ->
        {:error, %Skillbook.CommandError{kind: :unclosed_heredoc}}

      !heredoc && rem(length(String.split(line, "\"")), 2) == 0 ->
        {:error, %Skillbook.CommandError{kind: :unclosed_quote}}

      true ->
        {:ok, %__MODULE__{name: line |> String.split() |> hd(), raw: line}}
    end
  end
end

defmodule Skillbook.Extractor do
  @moduledoc false
  def extract(text) do
    commands =
      Regex.scan(~r/`{3,}cmd\n(.*?)\n`{3,}(?:\n|\z)/s, text) |> Enum.flat_map(fn [_, c] -> split(c) end)

    rest = Regex.replace(~r/`{3,}cmd\n(.*?)\n`{3,}(?:\n|\z)/s, text, "")

    incomplete =
      case Regex.run(~r/`{3,}cmd\n(.*)\z/s, rest) do
        [_, c] -> split(c)
        nil -> []
      end

    {:ok,
     %{
       commands: commands,
       text: rest |> String.trim() |> String.replace(~r/\n{3,}/, "\n\n"),
       incomplete: incomplete
     }}
  end

  defp split(c) do
    c
    |> String.split("\n")
    |> Enum.reduce([], fn
      line, [last | rest] = acc ->
        if match?({:error, _}, Skillbook.Command.parse(last)),
          do: [last <> "\n" <> line | rest],
          else: [line | acc]

      line, [] ->
        [line]
    end)
    |> Enum.reverse()
    |> Enum.reject(&(String.trim(&1) == ""))
  end
end

defmodule Skillbook.View do
  @moduledoc false
  defstruct [:ref, :book, :profile, :generation]

  def entries(view, _opts \\ []), do: Skillbook.fake(view.book)

  def fetch(view, name) do
    case Enum.find(entries(view), &(&1.name == name)) do
      nil -> {:error, %Skillbook.UnknownSkillError{name: name}}
      e -> {:ok, e}
    end
  end

  def domains(_view), do: [%{name: "notes", description: "Notes", body: "", path: "notes/SKILL.md"}]
end

defmodule Skillbook do
  @moduledoc false
  def start_link(opts) do
    if opts[:store] == "broken.db", do: throw(:never)
    Agent.start_link(fn -> opts end, name: opts[:name])
  end

  def fake(book) do
    opts = Agent.get(book, & &1)

    for dir <- opts[:sources],
        path <- Path.wildcard("#{dir}/**/*.md"),
        Path.basename(path) != "SKILL.md",
        [_, head, body] <- [Regex.run(~r/\A---\n(.*?)\n---\n(.*)\z/s, File.read!(path))] do
      data = Map.new(Regex.scan(~r/^(\w+): (.*)$/m, head), fn [_, k, v] -> {k, v} end)

      if data["description"] do
        %Skillbook.Entry{
          name: data["name"],
          kind: :command,
          description: data["description"],
          handler: data["handler"],
          domain: "notes",
          usage: List.last(Regex.run(~r/## Usage\n\n(.*)/, body) || [nil]),
          body: body,
          path: path,
          source: dir
        }
      end
    end
    |> Enum.reject(&is_nil/1)
    |> Enum.sort_by(& &1.name)
  end

  def view(book, %Skillbook.Profile{} = profile),
    do: %Skillbook.View{book: book, profile: profile, generation: 1}

  def prompt(view, _opts), do: Enum.map_join(fake(view.book), "\n", &"- #{&1.name}: #{&1.description}")

  def run(view, text, _opts \\ []) do
    {:ok, %{commands: commands, text: text, incomplete: incomplete}} = Skillbook.Extractor.extract(text)
    %Skillbook.Report{text: text, incomplete: incomplete, results: Enum.map(commands, &one(view, &1))}
  end

  defp one(view, line) do
    name = line |> String.split() |> hd()

    case Enum.find(fake(view.book), &(&1.name == name)) do
      nil ->
        e = %Skillbook.UnknownSkillError{name: name, suggestions: Enum.map(fake(view.book), & &1.name)}

        %Skillbook.Result{
          status: :error,
          content: Exception.message(e),
          error: e,
          name: name,
          command: line,
          duration: 3
        }

      %{handler: nil} = e ->
        %Skillbook.Result{status: :template, content: e.body, name: name, command: line, duration: 120}

      %{handler: handler} ->
        flags =
          Map.new(Regex.scan(~r/--(\w+) (?:"([^"]*)"|(\S+))/s, line), fn [_, k | v] -> {k, List.last(v)} end)

        {:ok, content} = Module.safe_concat([handler]).execute(flags, %{})
        %Skillbook.Result{status: :ok, content: content, name: name, command: line, duration: 1200}
    end
  end

  def get(view, path) do
    case Enum.find(fake(view.book), &(&1.name == path)) do
      _ when path in [nil, ""] -> {:ok, "# Skills\n\n" <> prompt(view, [])}
      nil -> {:error, %Skillbook.UnknownSkillError{name: path, suggestions: ["notes.echo"]}}
      e -> {:ok, e.body}
    end
  end

  def reload(_book), do: :ok

  def diagnostics(book) do
    opts = Agent.get(book, & &1)

    for dir <- opts[:sources],
        path <- Path.wildcard("#{dir}/**/*.md"),
        not (File.read!(path) =~ "description:") do
      %Skillbook.Diagnostic{
        code: :missing_description,
        severity: :error,
        path: path,
        line: 1,
        column: 1,
        message: "no `description`"
      }
    end
  end
end
