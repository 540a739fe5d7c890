defmodule Skillbook.ArgumentsTest do
  # Wrong types of arguments, for every public function of these modules: an `ArgumentError` that
  # names the argument and the value to pass, or the declared error.
  use ExUnit.Case, async: true

  alias Skillbook.MCP.Client

  alias Skillbook.{
    Agent,
    Catalog,
    Connections,
    Executor,
    Grammar,
    Help,
    Oban,
    Preflight,
    Prompt,
    Router
  }

  alias Skillbook.{Skill, Source, Store, Test, Tools, Transcript, View, Web}

  @modules [
    Skillbook,
    Agent,
    Catalog,
    Connections,
    Executor,
    Grammar,
    Help,
    Client,
    Oban,
    Preflight,
    Prompt,
    Prompt.Sections,
    Router,
    Skill,
    Store,
    Test,
    Tools,
    View,
    Web.Tokens
  ]
  # Start functions return their errors; bang functions unwrap; others take structs of
  # the library.
  @elsewhere [
    generate_key: 0,
    start_link: 1,
    child_spec: 1,
    fetch_view: 1,
    fetch_view: 2,
    fetch!: 2,
    new!: 1,
    new!: 2,
    compact: 2,
    shape: 2
  ]
  # The functions of `use Skillbook.Test`, which belong to a running test.
  # Takes paths.
  @of_a_test [:advance, :assert_asked, :assert_ran, :context, :now, :recording, :refute_asked] ++
               [:refute_ran, :run_schedules, :run_skill, :script, :view] ++
               [:read_evaluations]
  # They call those of more arguments with the view of the test.
  @with_its_view [assert_routes: 2, assert_routes: 3, refute_routes: 1, refute_routes: 2]

  setup_all do
    {:ok, catalog} = Catalog.load([Source.builtin()])
    %{catalog: catalog, view: View.all(catalog)}
  end

  defp expected(what, argument, function, got, more),
    do: "expected #{what} as the argument `#{argument}` of #{function}, got: #{got}#{more}"

  @view "a Skillbook.View"
  @of_book "; Skillbook.view(MyApp.Skills) returns the view of a book"

  # The function, its correct arguments, the position of a wrong one, and the message without the
  # names of the function and the value.
  defp rows(view, catalog) do
    {:ok, routed} = Router.route(view, "tasks.get T-1")
    context = Executor.context(view, routed)
    text = {"text", :text, ":text", "; write it as a string"}
    content = {"text, or a list of texts and Skillbook.Model.Media,", :text, ":text", ""}

    keyword =
      {"a keyword list", %{a: 1}, "%{a: 1}", "; write [key: value] instead of %{key: value}"}

    options = {"a keyword list or a map with atoms as keys", %{"a" => 1}, ~s(%{"a" => 1}), ""}

    fields = {"a map or a keyword list", [1], "[1]", ""}
    view_or_book = {"a Skillbook.View or the name of a book", "book", ~s("book"), ""}
    book = {@view, MyApp.Skills, "MyApp.Skills", @of_book}
    number = {@view, 1, "1", ""}

    name =
      {"the name of a book", view, inspect(view, limit: 5, printable_limit: 100),
       "; trusted code decides, with the name of the book"}

    of_catalog =
      {@view, catalog, inspect(catalog, limit: 5),
       "; Skillbook.View.new/2 returns the view of a catalog"}

    a_catalog = {"a Skillbook.Catalog", "skills", ~s("skills"), ""}
    account = %Connections.Account{book: MyApp.Skills, name: :google, vendor: Connections.Google}
    a_context = {"a Skillbook.Context", "a", ~s("a"), ""}
    an_account = {"a Skillbook.Connections.Account", "a", ~s("a"), ""}
    a_name = {"a name, an atom or text", 1, "1", ""}
    name_alone = {"the name of a book", "a", ~s("a"), ""}
    path = put_elem(text, 0, "text or nil")

    [
      {Client, :offers, [MyApp.Skills], [book: name_alone]},
      {Client, :refresh, [MyApp.Skills], [book: name_alone]},
      {Client, :await, [MyApp.Skills, 1], [book: name_alone]},
      {Client, :read, [MyApp.Skills, "a/b", "c"], [book: name_alone, name: text, file: text]},
      {Client, :approve, [MyApp.Skills, "a", :all, [by: "Bob"]],
       [book: name_alone, label: text, options: options]},
      {Client, :revoke, [MyApp.Skills, "a", :all, [by: "Bob"]],
       [book: name_alone, label: text, options: options]},
      {Skillbook, :prompt, [view, []], [view_or_book: view_or_book, options: options]},
      {Skillbook, :changes, [view, view], [old: book, new: of_catalog]},
      {Skillbook, :approvals, [view, []], [view_or_book: view_or_book, options: options]},
      {Skillbook, :approve, [MyApp.Skills, "A-1", [by: "Bob"]],
       [book: name, ref: text, options: options]},
      {Skillbook, :deny, [MyApp.Skills, "A-1", [by: "Bob"]],
       [book: name, ref: text, options: options]},
      {Skillbook, :run, [view, "", []],
       [view_or_book: view_or_book, text: text, options: options]},
      {Skillbook, :carry_out, [view, "", []],
       [view_or_book: view_or_book, line: text, options: options]},
      {Skillbook, :get, [view, nil, []],
       [view_or_book: view_or_book, path: path, options: options]},
      {Skillbook, :search, [view, "", []],
       [view_or_book: view_or_book, query: text, options: options]},
      {Skillbook, :usage, [view, []], [view_or_book: view_or_book, options: options]},
      {Skillbook, :pause_schedule, [MyApp.Skills, "a", [by: "Bob"]],
       [view_or_book: view_or_book, name: text, options: options]},
      {Skillbook, :resume_schedule, [MyApp.Skills, "a", [by: "Bob"]],
       [view_or_book: view_or_book, name: text, options: options]},
      {Skillbook, :run_schedule, [MyApp.Skills, "a", [by: "Bob"]],
       [view_or_book: view_or_book, name: text, options: options]},
      {Skillbook, :reset_breaker, [MyApp.Skills, "a", [by: "Bob"]],
       [view_or_book: view_or_book, name: text, options: options]},
      {Skillbook, :schedule, [view, []], [view_or_book: view_or_book, options: options]},
      {Skillbook, :explain, [catalog, "a", [profile: [id: "a"]]], [name: text, options: options]},
      {Agent, :run, [view, "", []],
       [view_or_book: view_or_book, input: content, options: options]},
      {Agent, :hand_over, [context, "a", "b"], [context: a_context, profile: text, reason: text]},
      {Agent, :rehydrate, [view, Transcript.new("a"), []],
       [
         view_or_book: view_or_book,
         transcript: {"a Skillbook.Transcript", "a", ~s("a"), ""},
         options: options
       ]},
      {Grammar, :gbnf, [view, []], [view_or_book: view_or_book, options: options]},
      {Help, :get, [view, nil, []], [view_or_book: view_or_book, path: path, options: options]},
      {Help, :top_level, [view, []], []},
      {Help, :domain, [view, "a", []], [view_or_book: view_or_book, name: text]},
      {Help, :domain_all, [view, "a", []], [view_or_book: view_or_book, name: text]},
      {Help, :skill, [view, "a", []], [view_or_book: view_or_book, name: text]},
      {Oban, :insert, [view, "", []],
       [view_or_book: view_or_book, command: text, options: options]},
      {Oban, :changeset, [view, "", []],
       [view_or_book: view_or_book, command: text, options: options]},
      {Oban, :insert_run, [view, "", []],
       [view_or_book: view_or_book, input: text, options: options]},
      {Prompt, :text, [view, []], [view_or_book: view_or_book, options: options]},
      {Prompt.Sections, :text, [view, []], [view_or_book: view_or_book, options: options]},
      {Tools, :list, [view, []], [view_or_book: view_or_book, options: options]},
      {Tools, :definitions, [view, []], [view_or_book: view_or_book, options: options]},
      # A call comes from a model, so a wrong one is a result for the model.
      {Tools, :call, [view, %{}, []], [view_or_book: view_or_book]},
      {Connections, :account, [context, :mail], [context: a_context]},
      {Connections, :token, [account, []], [account: an_account]},
      {Connections, :refused, [account, fn -> "a" end], [account: an_account]},
      {Connections, :services, [MyApp.Skills, "a"], [book: name_alone, profile: text]},
      {Connections, :list, [MyApp.Skills, []], [book: name, options: options]},
      {Connections, :authorize, [MyApp.Skills, :google, []],
       [book: name, account: a_name, options: options]},
      # Parameters come from a browser, so wrong ones are an error.
      {Connections, :complete, [MyApp.Skills, %{}, []], [book: name]},
      {Connections, :disconnect, [MyApp.Skills, :google, []],
       [book: name, account: a_name, options: options]},
      {Connections, :rotate, [MyApp.Skills], [book: name]},
      {Web.Tokens, :create, [MyApp.Skills, []], [book: name, options: options]},
      {Web.Tokens, :list, [MyApp.Skills, []], [book: name, options: options]},
      {Web.Tokens, :link, [MyApp.Skills, []], [book: name, options: options]},
      {Web.Tokens, :revoke, [MyApp.Skills, "t-1"], [book: name, id: text]},
      {View, :new, [catalog, [id: "a"]], [catalog: a_catalog]},
      {View, :all, [catalog], [book_or_catalog: a_catalog]},
      {View, :fetch, [view, "a"], [view: book, name: text]},
      {View, :entries, [view, []], [view: book, options: options]},
      {View, :domains, [view], [view: book]},
      {View, :count, [view], [view: of_catalog]},
      {View, :diagnostics, [view], [view: book]},
      {View, :tools, [view, "a"], [view: book, name: text]},
      {View, :flags, [view, "a"], [view: book, name: text]},
      {View, :examples, [view, "a"], [view: book, name: text]},
      {View, :frontmatter, [view, "a"], [view: book, name: text]},
      {View, :allows_tool?, [view, "a", "b", nil],
       [view: book, name: text, tool: text, argument: path]},
      {Test, :run, [view, []], [view: book, options: keyword]},
      {Test, :assert_routes, [view, "a", "tasks.get", []],
       [view_or_book: number, request: text, name: text, options: keyword]},
      {Test, :refute_routes, [view, "a", nil], [view_or_book: number, request: text, name: path]},
      {Test, :evaluate, [[], []],
       [evaluations: {"a list", "evals.yaml", ~s("evals.yaml"), ""}, options: keyword]},
      {Preflight, :run, [view, "", []],
       [view_or_book: view_or_book, messages: text, options: options]},
      {Preflight, :profile, [view, "", []],
       [view_or_book: view_or_book, messages: text, options: options]},
      {Router, :route, [view, "a", []],
       [view_or_book: view_or_book, line: text, options: options]},
      {Executor, :execute, [routed, context, []],
       [
         routed: {"a Skillbook.RoutedCommand", "a", ~s("a"), ""},
         context: {"a Skillbook.Context", view.profile, inspect(view.profile, limit: 5), ""},
         options: options
       ]},
      {Executor, :context, [view, routed, []],
       [view: book, routed: {"a Skillbook.RoutedCommand", nil, "nil", ""}, options: options]},
      {Catalog, :reload, [catalog], [catalog: a_catalog]},
      {Catalog, :refresh, [catalog, :all], [catalog: a_catalog]},
      {Catalog, :generation, [catalog], [catalog: a_catalog]},
      {Catalog, :count, [catalog], [catalog: a_catalog]},
      {Catalog, :diagnostics, [catalog], [catalog: a_catalog]}
    ] ++
      for {function, arguments, wrong} <- [
            {:create, [%{}, []], [fields: fields, options: options]},
            {:update, ["a", %{}, []], [name: text, changes: fields, options: options]},
            {:delete, ["a", []], [name: text, options: options]},
            {:enable, ["a", []], [name: text, options: options]},
            {:disable, ["a", []], [name: text, options: options]},
            {:restore, ["a", 1, []], [name: text]},
            {:put_note, ["a", "b", []], []},
            {:put_all, [[%{}], []], [entries: {"a list", "a", ~s("a"), ""}, options: options]},
            {:fetch, ["a", []], [name: text, options: options]},
            {:list, [[]], [options: options]},
            {:history, ["a", []], [name: text, options: options]},
            {:version, ["a", 1, []], [name: text]},
            {:diff, ["a", 1, 2, []], [name: text]}
          ],
          do: {Store, function, [view | arguments], [{:view_or_book, view_or_book} | wrong]}
  end

  test "a wrong type is an error that names the argument", %{view: view, catalog: catalog} do
    for {module, function, arguments, wrong} <- rows(view, catalog),
        {{argument, {type, value, got, more}}, index} <- indexed(module, function, wrong) do
      name = "#{inspect(module)}.#{function}/#{length(arguments)}"
      arguments = List.replace_at(arguments, index, value)
      error = catch_error(apply(module, function, arguments))
      assert %ArgumentError{message: message} = error, "#{name}: #{inspect(error)}"
      assert message == expected(type, argument, name, got, more)
    end
  end

  # The positions of the wrong arguments. A second row of one argument has its position.
  defp indexed(module, function, wrong) do
    names =
      case {module, function} do
        {_, :explain} -> [:book_or_catalog, :name, :options]
        {Client, name} when name in [:approve, :revoke] -> [:book, :label, :names, :options]
        _other -> wrong |> Keyword.keys() |> Enum.uniq()
      end

    for {name, _row} = row <- wrong, do: {row, Enum.find_index(names, &(&1 == name))}
  end

  test "other wrong values are errors that say what to write", %{catalog: catalog} do
    refresh = "expected :all or a list of paths as the argument `paths` of Skillbook.Catalog."

    raised = [
      {fn -> Skillbook.view("skills") end,
       ~s(expected the name of a running book, got: "skills")},
      {fn -> Skillbook.reload(catalog) end,
       "expected the name of a running book, got: " <> inspect(catalog, limit: 5)},
      {fn -> Skillbook.diagnostics(nil) end, "expected the name of a running book, got: nil"},
      {fn -> Skillbook.subscribe([]) end, "expected the name of a running book, got: []"},
      {fn -> Skillbook.unsubscribe(1) end, "expected the name of a running book, got: 1"},
      {fn -> Skillbook.explain("a", "b", profile: "c") end,
       ~s(expected the name of a running book, got: "a")},
      {fn -> Client.approve(:a, "a", "b") end,
       "expected :all or a list of names as the argument `names` of " <>
         ~s(Skillbook.MCP.Client.approve/4, got: "b")},
      {fn -> Catalog.refresh(catalog, "a") end, refresh <> ~s(refresh/2, got: "a")},
      {fn -> Catalog.refresh(catalog, [:a]) end, refresh <> "refresh/2, got: [:a]"}
    ]

    for {call, message} <- raised, do: assert_raise(ArgumentError, message, call)

    returned = [
      {Skillbook.start_link(%{"name" => :a}),
       ~s(expected a keyword list or a map with atoms as keys for a book, got: %{"name" => :a})},
      {Skill.new("math.add"),
       ~s(expected a keyword list or a map with atoms as keys for a skill, got: "math.add")},
      {Catalog.load("skills"),
       ~s(expected a list of sources, such as ["skills"], for :sources, got: "skills")},
      {View.new(catalog, "a"),
       ~s(expected a keyword list or a map with atoms as keys for a profile, got: "a")}
    ]

    for {{:error, error}, message} <- returned, do: assert(Exception.message(error) == message)
  end

  # A new function needs a row above.
  test "every public function is in a table", %{view: view, catalog: catalog} do
    tested =
      for {module, function, arguments, _} <- rows(view, catalog),
          do: {module, function, length(arguments)}

    names = ~w(view reload diagnostics subscribe unsubscribe)a
    tested = tested ++ for name <- names, arity <- [1, 2], do: {Skillbook, name, arity}
    tested = tested ++ [{Catalog, :load, 1}, {Skill, :new, 1}]

    for module <- @modules,
        {:docs_v1, _, _, _, _, _, docs} = Code.fetch_docs(module),
        {{:function, name, arity}, _, _, doc, _} <- docs,
        is_map(doc),
        {name, arity} not in @elsewhere,
        module != Test or (name not in @of_a_test and {name, arity} not in @with_its_view),
        do: assert({module, name, arity} in tested, "#{inspect(module)}.#{name}/#{arity}")
  end
end
