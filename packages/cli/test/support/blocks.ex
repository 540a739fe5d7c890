defmodule Skillbook.Test.Blocks do
  @moduledoc false
  # The code blocks of a page, run in order. A block is run by its language:
  #
  # - `elixir`: evaluated; the blocks of a page share bindings. `#=> text` below an expression is
  #   its value. Children of a supervisor, alone or as `children = […]`, are started. Options of a
  #   book start a book. Tests of ExUnit are run. Lines with `iex>` are doctests, also indented.
  # - `markdown`: a page is written into `skills` and must load without a diagnostic; a reply has
  #   its commands extracted.
  # - `cmd`: each line must be a command that a book with all built-in commands can run.
  # - `sh`: commands of `bin/skillbook`, run in the page's folder by `Skillbook.CLI`.
  # - `text`: lines after `$ bin/skillbook …` are what that command prints. Other texts need
  #   `shows`, see below.
  # - `json`, `yaml`, `toml`: parsed; frontmatter must have no diagnostic.
  #
  # A comment of HTML before a block, which no reader sees, changes this:
  #
  # - `not run: REASON`: the block cannot run
  # - `shows: CODE`: the block is the value of this expression, in which `output` is all that the
  #   block before printed, and `value` its value
  # - `replay`, `replay: PROFILE`: the block is the report of the commands in it
  # - `file: PATH`: the block is written into this file
  # - `diagnostics: CODES`: a page has these diagnostics, `none` of which another page has
  # - `status: NUMBER`: the exit status of the commands
  # - `setup` and lines of Elixir: evaluated, for what a page takes as given
  #
  # In texts that are compared, `…` stands for any text; blanks, decimals, times and random ids
  # do not matter.

  import ExUnit.Assertions
  import ExUnit.CaptureIO

  alias Skillbook.Support.JSON
  alias Skillbook.{Catalog, Command, Extractor, Frontmatter, Router, Source, View}
  alias Skillbook.Test.Checkout

  @doc "The blocks of a page, and its setups, in order."
  def read!(page) do
    {blocks, _notes, open} =
      Checkout.read!(page)
      |> String.split("\n")
      |> Enum.with_index(1)
      |> Enum.reduce({[], [], nil}, &line/2)

    assert {page, open} == {page, nil}
    Enum.reverse(blocks)
  end

  defp line({line, number}, {blocks, notes, nil}) do
    cond do
      match = Regex.run(~r/^( *)(`{3,}|~{3,})(\w*)/, line) ->
        [_, indent, fence, language] = match
        {blocks, notes, {:block, number, fence, String.length(indent), language, []}}

      match = Regex.run(~r/^<!-- (.*?)( -->)?$/, line) ->
        case match do
          [_, note, _] -> {blocks, [note | notes], nil}
          [_, "setup"] -> {blocks, notes, {:setup, number, []}}
          [_, note] -> {blocks, notes, {:note, note}}
        end

      line =~ ~r/^    (iex|\.\.\.)(\(\d+\))?> / ->
        {blocks, notes, {:block, number, :indented, 4, "elixir", [line]}}

      String.trim(line) == "" ->
        {blocks, notes, nil}

      true ->
        {blocks, [], nil}
    end
  end

  defp line({line, _}, {blocks, notes, {:note, note}}) do
    case String.split(String.trim(line), "-->") do
      [more] -> {blocks, notes, {:note, note <> " " <> more}}
      [more, ""] -> {blocks, [String.trim(note <> " " <> more) | notes], nil}
    end
  end

  defp line({"-->", _}, {blocks, notes, {:setup, number, lines}}),
    do: {[block(number, "setup", 0, lines, []) | blocks], notes, nil}

  defp line({line, _}, {blocks, notes, {:setup, number, lines}}),
    do: {blocks, notes, {:setup, number, [line | lines]}}

  defp line({line, _} = at, {blocks, notes, {:block, start, fence, indent, lang, lines}}) do
    cond do
      fence != :indented and String.trim(line) == fence ->
        {[block(start, lang, indent, lines, notes) | blocks], [], nil}

      fence == :indented and line != "" and not String.starts_with?(line, "    ") ->
        closed = {[block(start - 1, lang, indent, lines, notes) | blocks], [], nil}
        line(at, closed)

      true ->
        {blocks, notes, {:block, start, fence, indent, lang, [line | lines]}}
    end
  end

  defp block(line, language, indent, lines, notes) do
    text =
      lines
      |> Enum.reverse()
      |> Enum.map_join(&(String.replace(&1, ~r/^ {0,#{indent}}/, "") <> "\n"))

    %{line: line, language: language, text: text, notes: Map.new(notes, &note/1)}
  end

  defp note(note) do
    case String.split(note, ": ", parts: 2) do
      [key, value] -> {key, value}
      [key] -> {key, ""}
    end
  end

  @doc "The reasons of the blocks that cannot run, each with their number."
  def not_run(blocks),
    do: Enum.frequencies(for %{notes: %{"not run" => reason}} <- blocks, do: reason)

  @doc "The number of blocks that run, and of all, without the setups."
  def count(blocks) do
    all = Enum.reject(blocks, &(&1.language == "setup"))
    {Enum.count(all, &(not is_map_key(&1.notes, "not run"))), length(all)}
  end

  @doc """
  Runs the blocks of a page in the current folder, which has to be empty; `supervisor` gets the
  children. Returns a text for each block that fails.
  """
  def run(page, blocks, supervisor) do
    File.mkdir_p!("skills")
    application(File.cwd!())
    state = %{page: page, supervisor: supervisor, output: "", value: nil, binding: [], env: env()}

    before = links()
    {_state, faults} = Enum.reduce(blocks, {state, []}, &step/2)
    for process <- links() -- before, do: stop(process)
    Enum.reverse(faults)
  end

  defp links do
    {:links, links} = Process.info(self(), :links)
    Enum.filter(links, &is_pid/1)
  end

  # The processes of a page end before the next page, which may use the same names.
  defp stop(process) do
    monitor = Process.monitor(process)
    Process.unlink(process)
    Process.exit(process, :shutdown)
    assert_receive {:DOWN, ^monitor, :process, _, _}
  end

  defp step(%{notes: %{"not run" => _}}, acc), do: acc

  # A block that fails leaves the others, so that all faults of a page are seen at once.
  defp step(block, {state, faults}) do
    {block(block, state), faults}
  rescue
    error ->
      message = Exception.format_banner(:error, error, __STACKTRACE__)
      {state, ["#{state.page}:#{block.line}: #{message}" | faults]}
  catch
    kind, reason ->
      message = Exception.format_banner(kind, reason, __STACKTRACE__)
      {state, ["#{state.page}:#{block.line}: #{message}" | faults]}
  end

  # An application `my_app` with the skills of the page.
  defp application(folder) do
    ebin = Path.join(folder, "my_app/ebin")
    File.mkdir_p!(ebin)
    File.mkdir_p!(Path.join(folder, "my_app/priv"))
    File.ln_s!(Path.join(folder, "skills"), Path.join(folder, "my_app/priv/skills"))
    File.ln_s!(Path.join(folder, "my_app/priv"), Path.join(folder, "priv"))
    File.ln_s!(Checkout.path("examples"), Path.join(folder, "examples"))
    app = "{application, my_app, [{vsn, \"1.0.0\"}, {modules, []}, {applications, []}]}."
    File.write!(Path.join(ebin, "my_app.app"), app)
    Code.prepend_path(ebin)
  end

  defp env do
    imports =
      quote do
        import ExUnit.Assertions
        import unquote(__MODULE__), only: [write: 2, cli: 1, cli: 2]
        require Logger
      end

    {_, _, env} = Code.eval_quoted_with_env(imports, [], Code.env_for_eval(file: "docs"))
    env
  end

  ## By language

  defp block(%{notes: %{"shows" => code}} = block, state) do
    binding = [output: state.output, value: state.value] ++ state.binding
    {shown, _, _} = Code.eval_quoted_with_env(Code.string_to_quoted!(code), binding, state.env)
    same(text(shown), block.text)
    state
  end

  defp block(%{notes: %{"replay" => profile}} = block, state) do
    lines = for [_, line] <- Regex.scan(~r/^\[\d+\] (.*)$/m, block.text), do: line
    reply = "```cmd\n" <> Enum.join(lines, "\n") <> "\n```"
    profile = if profile == "", do: "default", else: profile
    report = Skillbook.run(MyApp.Skills, reply, profile: profile)
    same(to_string(report), block.text)
    state
  end

  defp block(%{notes: %{"file" => path}} = block, state) do
    write(path, block.text)

    if block.language == "yaml",
      do: assert({:ok, %{diagnostics: []}} = Frontmatter.parse("---\n#{block.text}---\n"))

    state
  end

  defp block(%{language: "setup"} = block, state), do: %{elixir(block, state) | output: ""}

  defp block(%{language: "elixir", text: text} = block, state) do
    if text =~ ~r/^ *iex> /m, do: doctest(text, state), else: elixir(block, state)
  end

  defp block(%{language: language} = block, state) when language in ["sh", "console"] do
    status = Map.get(block.notes, "status", "0")

    outputs =
      for line <- block.text |> String.replace(~r/\\\n */, "") |> String.split("\n", trim: true),
          not String.starts_with?(line, "#"),
          do: command(line, status)

    %{state | output: Enum.join(outputs)}
  end

  defp block(%{language: "text", text: "$ " <> _} = block, state) do
    for part <- String.split(block.text, ~r/^\$ /m, trim: true) do
      [line | shown] = part |> String.replace(~r/\\\n */, "") |> String.split("\n", parts: 2)
      output = command(line, Map.get(block.notes, "status", "0"))
      unless shown in [[], [""]], do: same(output, hd(shown))
    end

    state
  end

  defp block(%{language: "markdown"} = block, state) do
    markdown(block)
    state
  end

  defp block(%{language: "cmd", text: text}, state) do
    view = everything()

    for line <- commands(text) do
      line = String.replace(line, ~r/\{(last|\d+|\w+)\}/, "T-1")
      assert {^line, {kind, _}} = {line, Router.route(view, line)}
      assert kind in [:ok, :help]
    end

    state
  end

  defp block(%{language: "json", text: text}, state) do
    assert {:ok, _} = JSON.decode(text)
    state
  end

  defp block(%{language: "yaml", text: text} = block, state) do
    page =
      if text =~ ~r/^name:/m, do: text, else: "name: docs.page\ndescription: A page\n" <> text

    assert {:ok, %{diagnostics: []}} = Frontmatter.parse("---\n#{page}---\n")
    [_, name] = Regex.run(~r/^name: (.*)$/m, page)
    page(%{block | text: "---\n#{page}---\n\nText of the page.\n"}, name)
    state
  end

  defp block(%{language: "toml", text: text}, state) do
    write("block.toml", text)
    script = "import tomllib; tomllib.load(open('block.toml', 'rb'))"
    assert {"", 0} = System.cmd("python3", ["-c", script], stderr_to_stdout: true)
    state
  end

  defp block(block, _state),
    do: flunk("a block of the language #{inspect(block.language)} needs a comment; see Blocks")

  ## Elixir

  defp elixir(block, state) do
    output =
      capture_io(fn ->
        send(self(), {:evaluated, capture_warnings(fn -> evaluate(block, state) end)})
      end)

    assert_received {:evaluated, state}
    %{state | output: output}
  end

  # Modules of an example may lack parts that are not shown.
  defp capture_warnings(work) do
    capture_io(:stderr, fn -> send(self(), {:value, work.()}) end)
    assert_received {:value, value}
    value
  end

  defp evaluate(block, state) do
    {kind, expressions, comments} = parse(block, state.page)

    cond do
      kind == :options ->
        {options, binding, env} = eval(expressions, state)
        defaults = [name: MyApp.Skills, sources: ["skills"], store: ":memory:"]
        start({Skillbook, Keyword.merge(defaults, options)}, state.supervisor)
        %{state | binding: binding, env: env, value: options}

      Enum.all?(expressions, &match?({:test, _, _}, &1)) ->
        options = [sources: ["skills"], profiles: [[id: "support", writes: :ask]]]
        head = quote do: use(Skillbook.Test, unquote(options))
        expressions(block, [module(block, expressions, head)], comments, state)

      Enum.any?(expressions, &match?({:config, _, _}, &1)) ->
        {config, code} = Enum.split_with(expressions, &match?({:config, _, _}, &1))
        text = Enum.map_join(config, "\n", &Macro.to_string/1)
        values = Config.Reader.eval!("config.exs", "import Config\n" <> text)
        for {:my_app, options} <- values, do: Application.put_all_env(my_app: options)
        expressions(block, code, [], state)

      true ->
        expressions(block, expressions, comments, state)
    end
  end

  defp parse(block, page) do
    options = [file: page, line: block.line + 1]

    case Code.string_to_quoted_with_comments(block.text, options) do
      {:ok, {:__block__, _, expressions}, comments} ->
        {:code, expressions, comments}

      {:ok, one, comments} ->
        {:code, [one], comments}

      {:error, error} ->
        # Options, as they stand in a list.
        case Code.string_to_quoted("[" <> block.text <> "]", options) do
          {:ok, list} -> {:options, list, []}
          {:error, _} -> flunk("no Elixir: #{inspect(error)}")
        end
    end
  end

  defp definition?({:@, _, _}), do: true
  defp definition?({kind, _, _}), do: kind in [:def, :defp]
  defp definition?(_), do: false

  defp expressions(block, expressions, comments, state) do
    expressions = functions(block, expressions)

    expressions
    |> Enum.zip(Enum.map(tl(expressions ++ [nil]), &start_line/1))
    |> Enum.reduce(state, fn {expression, next}, state ->
      {value, binding, env} = eval(expression, state)
      for child <- children(expression, value, block), do: start(child, state.supervisor)
      run_tests(value)
      first = start_line(expression) || 0

      for %{text: "#=> " <> expected, line: line} <- comments,
          line >= first and (next == nil or line < next),
          do: expect(value, expected, binding, env)

      %{state | value: value, binding: binding, env: env}
    end)
  end

  # Functions without a module become those of one.
  defp functions(block, expressions) do
    expressions
    |> Enum.chunk_by(&definition?/1)
    |> Enum.flat_map(fn [first | _] = chunk ->
      if definition?(first), do: [module(block, chunk, nil)], else: chunk
    end)
  end

  defp module(block, expressions, head) do
    name = Module.concat(MyApp, "Block#{block.line}")
    quote do: defmodule(unquote(name), do: unquote({:__block__, [], [head | expressions]}))
  end

  # `{Skillbook, name: …}` as an expression of its own, and `children = […]`, unless the block
  # starts them itself.
  defp children({{:__aliases__, _, _}, options}, child, _block) when is_list(options), do: [child]

  defp children({:=, _, [{:children, _, _}, _]}, children, block),
    do: if(block.text =~ "start_link(children", do: [], else: children)

  defp children(_, _, _), do: []

  # The tests of a module of ExUnit.
  defp run_tests({:module, module, _, _}) do
    for test <- tests(module) do
      context = Map.merge(test.tags, %{module: module, test: test.name, async: false})
      context = Map.merge(context, module.__ex_unit__(:setup_all, context))
      context = Map.merge(context, module.__ex_unit__(:setup, context))
      apply(module, test.name, [context])
    end
  end

  defp run_tests(_), do: :ok

  defp tests(module),
    do: if(function_exported?(module, :__ex_unit__, 0), do: module.__ex_unit__().tests, else: [])

  defp start_line(expression) do
    {_, line} =
      Macro.prewalk(expression, nil, fn
        {_, meta, _} = node, line when is_list(meta) -> {node, least(line, meta[:line])}
        node, line -> {node, line}
      end)

    line
  end

  defp least(nil, line), do: line
  defp least(line, nil), do: line
  defp least(a, b), do: min(a, b)

  defp eval(quoted, state), do: Code.eval_quoted_with_env(quoted, state.binding, state.env)

  defp expect(value, expected, binding, env) do
    if expected =~ "…" do
      same(inspect(value, limit: :infinity, printable_limit: :infinity), expected)
    else
      {expected, _, _} = Code.eval_quoted_with_env(Code.string_to_quoted!(expected), binding, env)

      assert value == expected
    end
  end

  ## Doctests

  defp doctest(text, state) do
    text
    |> String.split("\n")
    |> Enum.map(&String.replace(&1, ~r/^ {0,4}/, ""))
    |> Enum.reduce([], fn
      "iex> " <> code, examples -> [{[code], []} | examples]
      "...> " <> code, [{lines, []} | examples] -> [{[code | lines], []} | examples]
      "", examples -> examples
      shown, [{lines, expected} | examples] -> [{lines, [shown | expected]} | examples]
    end)
    |> Enum.reverse()
    |> Enum.reduce(state, fn {lines, expected}, state ->
      code = lines |> Enum.reverse() |> Enum.join("\n")
      expected = expected |> Enum.reverse() |> Enum.join("\n")
      example(Code.string_to_quoted!(code), expected, state)
    end)
  end

  defp example(quoted, "** (" <> raised, state) do
    {value, _, _} = eval(quoted, state)
    flunk("expected ** (#{raised}, got: #{inspect(value)}")
  rescue
    error in ExUnit.AssertionError -> reraise error, __STACKTRACE__
    error -> same("#{inspect(error.__struct__)}) #{Exception.message(error)}", raised) && state
  end

  defp example(quoted, expected, state) do
    {value, binding, env} = eval(quoted, state)
    if expected != "", do: expect(value, expected, binding, env)
    %{state | value: value, binding: binding, env: env}
  end

  ## Children

  # A book of a name that another block has used replaces it.
  defp start({module, options}, supervisor) do
    options = if options[:port], do: Keyword.put(options, :port, 0), else: options
    spec = Supervisor.child_spec({module, options}, id: {module, options[:name]})
    Supervisor.terminate_child(supervisor, spec.id)
    Supervisor.delete_child(supervisor, spec.id)
    assert {:ok, _} = Supervisor.start_child(supervisor, spec)
  end

  ## Markdown

  defp markdown(%{text: "---\n" <> _} = block) do
    case Regex.run(~r/^name: (\S+)$/m, block.text) do
      [_, name] -> page(block, name)
      nil -> index(block)
    end
  end

  defp markdown(%{text: text} = block) do
    case Regex.run(~r/^## Usage\n\n(\S+)/m, text) do
      [_, name] ->
        page(%{block | text: "---\nname: #{name}\ndescription: A page\n---\n\n" <> text}, name)

      nil ->
        if text =~ "cmd" do
          assert {:ok, %{commands: lines, incomplete: []}} = Extractor.extract(text)
          for line <- lines, do: assert({:ok, _} = Command.parse(line))
        else
          page(
            %{block | text: "---\nname: docs.prose\ndescription: A page\n---\n\n" <> text},
            nil
          )
        end
    end
  end

  defp index(block) do
    [_, domain] = Regex.run(~r/^domain: (\S+)$/m, block.text)
    loads("skills/#{domain}/SKILL.md", block)
  end

  defp page(block, nil), do: loads("alone/docs/prose.md", block)

  defp page(block, name) do
    case String.split(name, ".") do
      [name] -> loads("skills/#{name}/SKILL.md", block)
      parts -> loads("skills/#{Path.join(parts)}.md", block)
    end
  end

  # Alone, so that other pages of the example do not matter, and for later blocks.
  defp loads(path, block) do
    write(path, block.text)
    File.rm_rf!("alone")
    write("alone/" <> Path.join(tl(Path.split(path))), block.text)
    {:ok, catalog} = Catalog.load(["alone"])
    found = for diagnostic <- Catalog.diagnostics(catalog), do: to_string(diagnostic.code)
    expected = block.notes |> Map.get("diagnostics", "") |> String.split()
    assert {path, Enum.sort(found -- ["handler_missing"])} == {path, Enum.sort(expected)}
  end

  ## Commands

  defp commands(text) do
    {:ok, %{commands: lines}} = Extractor.extract("```cmd\n#{text}```\n")
    lines
  end

  # With the commands of the page, of all packages and of all connections.
  defp everything do
    packs = [:skills, :agent, :hand_over, :vaults, :connections, :assistant]
    sources = Enum.map(packs, &Source.builtin/1)
    {:ok, catalog} = Catalog.load(sources ++ [[path: "skills"]])
    View.all(catalog)
  end

  @doc "What a line of the command line prints, for `shows` and setups."
  def cli(line, status \\ "0"), do: command(line, status)

  defp command(line, status) do
    {input, line} = input(line)
    assert {line, true} == {line, line =~ ~r/^(bin\/)?skillbook /}
    [_ | args] = words(line)

    output =
      capture_io([input: input, capture_prompt: false], fn ->
        errors = capture_io(:stderr, fn -> send(self(), {:status, Skillbook.CLI.run(args)}) end)

        send(self(), {:errors, errors})
      end)

    assert_received {:status, code}
    assert_received {:errors, errors}
    assert {line, to_string(code), output <> errors} == {line, status, output <> errors}
    output <> errors
  end

  # `LEFT | bin/skillbook …`: what the shell's command prints.
  defp input(line) do
    case Regex.run(~r/^(.*?) \|\s+((?:bin\/)?skillbook .*)$/, line) do
      [_, left, command] ->
        {output, 0} = System.cmd("sh", ["-c", left])
        {output, command}

      nil ->
        {"", line}
    end
  end

  # As the shell splits it.
  defp words(line) do
    {words, 0} = System.cmd("sh", ["-c", "printf '%s\\0' #{line}"])
    String.split(words, "\0", trim: true)
  end

  ## Texts

  defp text(%{__exception__: true} = error), do: Exception.message(error)
  defp text({:error, error}), do: text(error)
  defp text(value), do: to_string(value)

  defp same(printed, shown) do
    printed = plain(printed)
    shown = plain(shown)
    pattern = shown |> Regex.escape() |> String.replace("…", ".*?")
    if Regex.match?(~r/\A\s*#{pattern}\s*\z/us, printed), do: true, else: assert(printed == shown)
  end

  defp plain(text) do
    text
    |> String.replace(File.cwd!(), "/srv/app")
    |> String.replace(~r/\\\n/, "")
    |> String.replace(~r/\b([AT])-[a-z0-9]{8,}\b/, "\\1-ID")
    |> String.replace(~r/(?<=--id )[a-z0-9]{16}\b/, "ID")
    |> String.replace(~r/\d{4}-\d\d-\d\d/, "DATE")
    |> String.replace(~r/\d\d:\d\d(:\d\d)?(\.\d+)?/, "TIME")
    |> String.replace(~r/\d+\.\d+|\d+(?= ms)/, "N")
    |> String.replace(~r/\s+/, " ")
    |> String.trim()
  end

  @doc "Writes a file and its folder, for setups."
  def write(path, text) do
    File.mkdir_p!(Path.dirname(path))
    File.write!(path, text)
  end
end
