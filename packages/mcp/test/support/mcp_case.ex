defmodule Skillbook.MCPCase do
  @moduledoc false
  # For tests that ask the MCP server about the skills of a folder, or to run commands.

  use ExUnit.CaseTemplate

  alias Skillbook.MCP.{Context, Resources, Skills}
  alias Skillbook.{Catalog, Skill, View}

  using do
    quote do
      import Skillbook.MCPCase
      import Skillbook.SkillsCase, only: [write: 2, page: 1, page: 2, page: 3]
    end
  end

  @doc "The context of a request for a profile's view of a folder."
  def context(folder, profile \\ [id: "all", grants: :all], revision \\ "2026-07-28") do
    {:ok, catalog} = Catalog.load([folder])
    view = if profile[:grants] == :all, do: View.all(catalog), else: View.new!(catalog, profile)
    %Context{view: view, profile: view.profile, revision: revision}
  end

  @doc "The answer to a method of resources and skills."
  def ask(context, method, params \\ %{})

  def ask(context, "skills/" <> _ = method, params), do: Skills.handle(method, params, context)

  def ask(context, "resources/directory/read" = method, params),
    do: Skills.handle(method, params, context)

  def ask(context, method, params), do: Resources.handle(method, params, context)

  @doc "The result of a method at a URI."
  def at!(context, method, uri) do
    {:ok, result} = ask(context, method, %{"uri" => uri})
    result
  end

  @doc "The code and the message of a method's error at a URI."
  def error_at(context, method, uri) do
    {:error, error} = ask(context, method, %{"uri" => uri})
    {error.code, error.message}
  end

  @doc "All pages of a list."
  def pages(context, method, params \\ %{}) do
    {:ok, result} = ask(context, method, params)

    case result do
      %{"nextCursor" => cursor} ->
        [result | pages(context, method, Map.put(params, "cursor", cursor))]

      _ ->
        [result]
    end
  end

  @doc "All rows of a list."
  def all(context, method, key, params \\ %{}),
    do: Enum.flat_map(pages(context, method, params), & &1[key])

  @doc """
  A book with two commands. `letters.send` writes, and sends `{:sent, to}` to the test.
  `clock.wait` reports its progress, sends `{:waits, pid}` to the test, and never ends.
  """
  def letters(options) do
    {sources, options} = Keyword.pop(options, :sources, [])

    letter =
      Skill.new!(
        name: "letters.send",
        description: "Sends a letter",
        effects: :write,
        flags: [to: [type: :text, required: true]],
        run: fn %{"to" => to}, context ->
          send(context.assigns.test, {:sent, to})
          {:ok, "Sent to #{to}."}
        end
      )

    wait =
      Skill.new!(
        name: "clock.wait",
        description: "Waits",
        effects: :read,
        flags: [],
        run: fn _flags, context ->
          Skillbook.Context.report(context, 1, text: "waiting")
          send(context.assigns.test, {:waits, self()})
          Process.sleep(:infinity)
        end
      )

    defaults = [builtins: false, store: ":memory:", assigns: %{test: self()}]

    Skillbook.SkillsCase.book(
      [sources: [letter, wait | sources]] ++ Keyword.merge(defaults, options)
    )
  end

  @doc "How many processes hear of the changes of a book."
  def subscribers(book),
    do: length(:pg.get_local_members(Skillbook.Subscribers, {book, :changes}))

  @doc "The bytes of a read file."
  def bytes(%{"contents" => [%{"text" => text}]}), do: text
  def bytes(%{"contents" => [%{"blob" => blob}]}), do: Base.decode64!(blob)
end
