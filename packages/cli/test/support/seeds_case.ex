defmodule Skillbook.SeedsCase do
  @moduledoc false
  # For `test/seeds`, which runs each thing that a document of the design names: command lines,
  # flags, fields, endpoints and formats of answers.
  #
  # `names` lists the names of each section of a document; a pair has the document's name and
  # ours. A row belongs to one or more sections, and a test checks that each of our names occurs
  # in a row of its section. Where the product differs from the document on purpose, the row has
  # `@tag differs:` with the decision, and asserts what the product does instead.

  use ExUnit.CaseTemplate

  alias Skillbook.Test.{GoogleVendor, Services}

  @ann "ann@example.com"
  # A Tuesday.
  @now ~U[2026-02-17 12:00:00Z]

  using options do
    quote do
      use Skillbook.SkillsCase
      import Skillbook.SeedsCase
      @moduletag :capture_log
      @names unquote(options[:names])
      @before_compile Skillbook.SeedsCase
      Module.register_attribute(__MODULE__, :rows, accumulate: true)

      test "each name of the document is in a row of its section" do
        assert Skillbook.SeedsCase.missing(@names, __MODULE__.rows()) == []
      end

      test "each decision is a sentence" do
        for %{tags: %{differs: decision}} <- __MODULE__.__ex_unit__().tests,
            do: assert(decision =~ ~r/\A[A-Z][^\n]{20,}\.\z/)
      end
    end
  end

  # ExUnit collects the tests of a module before this runs, so it defines none.
  defmacro __before_compile__(_env) do
    quote do
      def rows, do: @rows
    end
  end

  @doc ~S|A test of sections: `row "5.3", "a flag without a value is true", %{book: book} do`.|
  defmacro row(sections, title, context \\ quote(do: _context), do: block) do
    sections = List.wrap(sections)
    name = "#{Enum.join(sections, ", ")}: #{title}"

    quote do
      @rows {unquote(sections), unquote(texts(block))}
      test(unquote(name), unquote(context), do: unquote(block))
    end
  end

  # All texts and names in a piece of code.
  defp texts(code) do
    {_code, texts} =
      Macro.prewalk(code, [], fn
        part, texts when is_binary(part) -> {part, [String.replace(part, "\\n", "\n") | texts]}
        part, texts when is_atom(part) -> {part, [to_string(part) | texts]}
        {name, _, _} = part, texts when is_atom(name) -> {part, [to_string(name) | texts]}
        part, texts -> {part, texts}
      end)

    Enum.join(texts, "\n")
  end

  @doc "The names that no row of their section has, as `{section, name}`."
  def missing(names, rows) do
    for {section, names} <- names,
        text = for({sections, text} <- rows, section in sections, into: "", do: text <> "\n"),
        name <- names,
        not (text =~ whole(ours(name))),
        do: {section, name}
  end

  defp ours({_theirs, ours}), do: ours
  defp ours(name), do: name

  # A name is not a part of a longer one: `--to` is not in `--tone`, nor `email` in `email.send`.
  defp whole(name) do
    before = if name =~ ~r/\A[\w-]/u, do: "(?<![\\w.-])"
    behind = if name =~ ~r/[\w-]\z/u, do: "(?!\\.?\\w|-)"
    Regex.compile!("#{before}#{Regex.escape(name)}#{behind}", "u")
  end

  @doc "The options of a book's connections to mail, calendar and drive in a world of Google."
  def google(world),
    do: [google: [vendor: GoogleVendor, token: fn -> world.tokens[@ann] end, url: world.url]]

  @doc """
  A book whose calls with an approval are allowed and sent to the test as `{:asked, request}`, and
  its world. `seed:` has the data of the services, the others are options of the book.
  """
  def office(options \\ []) do
    test = self()
    {seed, options} = Keyword.pop(options, :seed, [])
    mailbox = [gmail: %{messages: %{@ann => []}, labels: %{@ann => []}}]
    world = Services.world(mailbox |> Keyword.merge(seed) |> Map.new())

    ask = fn request ->
      send(test, {:asked, request})
      :allow
    end

    defaults = [store: ":memory:", watch: false, ask: ask, connections: google(world)]
    {Skillbook.SkillsCase.book(Keyword.merge(defaults, options)), world}
  end

  @doc "The result of one command line; `profile:` and the options of `Skillbook.run/3`."
  def run(book, line, options \\ []) do
    {profile, options} = Keyword.pop(options, :profile, "default")
    options = Keyword.put_new(options, :now, @now)
    view = Skillbook.view(book, profile)
    [result] = Skillbook.run(view, "```cmd\n#{line}\n```", options).results
    result
  end

  @doc ~S|What the model reads, behind the status if it is not `:ok`: `"error: …"`.|
  def answer(book, line, options \\ []) do
    case run(book, line, options) do
      %{status: :ok, content: text} -> text
      %{status: status, content: text} -> "#{status}: #{text}"
    end
  end

  @doc """
  Runs rows in order: a line, and what its answer has: a text, a pattern, a function that is true
  of it, or a list of these.
  """
  def check(book, rows, options \\ []) do
    for {line, expected} <- rows do
      answer = answer(book, line, options)

      for expected <- List.wrap(expected) do
        found = if is_function(expected), do: expected.(answer), else: answer =~ expected
        assert found, "#{line}\nexpected #{inspect(expected)} in:\n#{answer}"
      end
    end
  end

  @doc "The time at which commands run."
  def now, do: @now

  @doc "A model that answers with a text or an object, and tells the test about each question."
  def model(answer) do
    test = self()

    Skillbook.Model.Function.new(fn messages, _options ->
      send(test, {:asked, Enum.map_join(messages, "\n", & &1.content)})
      if is_binary(answer), do: answer, else: Skillbook.Support.JSON.encode(answer)
    end)
  end
end
