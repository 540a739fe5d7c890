defmodule Skillbook.ArgumentsTest do
  # Wrong types of arguments, for every public function of these modules: an `ArgumentError` that
  # names the argument and the value to pass, or the declared error.
  use ExUnit.Case, async: true

  alias Skillbook.{Catalog, Executor, Preflight, Router, Source, Store, Test, View}

  @modules [Skillbook, Catalog, Executor, Preflight, Router, Store, Test, View]
  # Start functions return their errors; bang functions unwrap.
  @elsewhere [start_link: 1, child_spec: 1, fetch!: 2]

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

    keyword =
      {"a keyword list", %{a: 1}, "%{a: 1}", "; write [key: value] instead of %{key: value}"}

    map = {"a map", [a: 1], "[a: 1]", "; write %{key: value} instead of [key: value]"}
    book = {@view, MyApp.Skills, "MyApp.Skills", @of_book}
    number = {@view, 1, "1", ""}

    of_catalog =
      {@view, catalog, inspect(catalog, limit: 5),
       "; Skillbook.View.new/2 returns the view of a catalog"}

    a_catalog = {"a Skillbook.Catalog", "skills", ~s("skills"), ""}
    path = put_elem(text, 0, "text or nil")

    [
      {Skillbook, :prompt, [view, []], [view: book, options: keyword]},
      {Skillbook, :changes, [view, view], [old: book, new: of_catalog]},
      {Skillbook, :run, [view, "", []], [view: book, view: number, text: text, options: keyword]},
      {Skillbook, :carry_out, [view, "", []], [view: book, line: text, options: keyword]},
      {Skillbook, :get, [view, nil], [view: book, path: path]},
      {Skillbook, :search, [view, "", []], [view: book, query: text, options: keyword]},
      {Skillbook, :usage, [view, []], [view: book]},
      {Skillbook, :schedule, [view, []], [view: book]},
      {Skillbook, :explain, [catalog, "a", [id: "a"], []], [name: text, prompt: keyword]},
      {View, :new, [catalog, [id: "a"]], [catalog: a_catalog]},
      {View, :all, [catalog], [book_or_catalog: a_catalog]},
      {View, :fetch, [view, "a"], [view: book, name: text]},
      {View, :entries, [view, []], [view: book, options: keyword]},
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
      {Preflight, :run, [view, "", []], [view: book, messages: text, options: keyword]},
      {Router, :route, [view, "a"], [view: book, line: text]},
      {Executor, :execute, [routed, context, []],
       [
         routed: {"a Skillbook.RoutedCommand", "a", ~s("a"), ""},
         context: {"a Skillbook.Context", view.profile, inspect(view.profile, limit: 5), ""},
         options: keyword
       ]},
      {Executor, :context, [view, routed, []],
       [view: book, routed: {"a Skillbook.RoutedCommand", nil, "nil", ""}, options: keyword]},
      {Catalog, :reload, [catalog], [catalog: a_catalog]},
      {Catalog, :refresh, [catalog, :all], [catalog: a_catalog]},
      {Catalog, :generation, [catalog], [catalog: a_catalog]},
      {Catalog, :count, [catalog], [catalog: a_catalog]},
      {Catalog, :diagnostics, [catalog], [catalog: a_catalog]},
      {Store, :create, [view, %{}, []], [view: book, fields: map]},
      {Store, :update, [view, "a", %{}, []], [view: book, name: text, changes: map]},
      {Store, :delete, [view, "a", []], [view: book, name: text]},
      {Store, :enable, [view, "a", []], [view: book, name: text]},
      {Store, :disable, [view, "a", []], [view: book, name: text]},
      {Store, :restore, [view, "a", 1, []], [view: book, name: text]},
      {Store, :put_note, [view, "a", "b", []], [view: book]},
      {Store, :fetch, [view, "a"], [view: book, name: text]},
      {Store, :list, [view, []], [view: book]},
      {Store, :history, [view, "a"], [view: book, name: text]},
      {Store, :version, [view, "a", 1], [view: book, name: text]},
      {Store, :diff, [view, "a", 1, 2], [view: book, name: text]}
    ]
  end

  test "a wrong type is an error that names the argument", %{view: view, catalog: catalog} do
    for {module, function, arguments, wrong} <- rows(view, catalog),
        {{argument, {type, value, got, more}}, index} <- indexed(function, wrong) do
      name = "#{inspect(module)}.#{function}/#{length(arguments)}"
      arguments = List.replace_at(arguments, index, value)
      error = catch_error(apply(module, function, arguments))
      assert %ArgumentError{message: message} = error, "#{name}: #{inspect(error)}"
      assert message == expected(type, argument, name, got, more)
    end
  end

  # The positions of the wrong arguments. A second row of one argument has its position.
  defp indexed(function, wrong) do
    names =
      if function == :explain,
        do: [:book_or_catalog, :name, :profile, :prompt],
        else: wrong |> Keyword.keys() |> Enum.uniq()

    for {name, _row} = row <- wrong, do: {row, Enum.find_index(names, &(&1 == name))}
  end

  test "other wrong values are errors that say what to write", %{view: view, catalog: catalog} do
    refresh = "expected :all or a list of paths as the argument `paths` of Skillbook.Catalog."

    raised = [
      {fn -> Skillbook.view("skills") end,
       ~s(expected the name of a running book, got: "skills")},
      {fn -> Skillbook.reload(catalog) end,
       "expected the name of a running book, got: " <> inspect(catalog, limit: 5)},
      {fn -> Skillbook.diagnostics(nil) end, "expected the name of a running book, got: nil"},
      {fn -> Skillbook.subscribe([]) end, "expected the name of a running book, got: []"},
      {fn -> Skillbook.unsubscribe(1) end, "expected the name of a running book, got: 1"},
      {fn -> Skillbook.explain("a", "b", "c") end,
       ~s(expected the name of a running book, got: "a")},
      {fn -> Catalog.refresh(catalog, "a") end, refresh <> ~s(refresh/2, got: "a")},
      {fn -> Catalog.refresh(catalog, [:a]) end, refresh <> "refresh/2, got: [:a]"}
    ]

    for {call, message} <- raised, do: assert_raise(ArgumentError, message, call)

    returned = [
      {Skillbook.start_link(%{name: :a}), "expected a keyword list for a book, got: %{name: :a}"},
      {Catalog.load("skills"),
       ~s(expected a list of sources, such as ["skills"], for :sources, got: "skills")},
      {View.new(catalog, "a"), ~s(expected a keyword list for a profile, got: "a")},
      {Store.list(view, %{}), "expected a keyword list for a list of the store, got: %{}"}
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
    tested = tested ++ [{Catalog, :load, 1}]

    for module <- @modules,
        {:docs_v1, _, _, _, _, _, docs} = Code.fetch_docs(module),
        {{:function, name, arity}, _, _, doc, _} <- docs,
        is_map(doc),
        {name, arity} not in @elsewhere,
        do: assert({module, name, arity} in tested, "#{inspect(module)}.#{name}/#{arity}")
  end
end
