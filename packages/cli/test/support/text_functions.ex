defmodule Skillbook.TextFunctions do
  @moduledoc false
  # Every public function that takes text, each as a function of one text, for the guards of
  # test/hostile: how its time grows, and how long it stays on a normal scheduler.
  #
  # `missing/1` compares the table with the specs of all public modules and of the library of
  # connections, so that a new function cannot be forgotten. That library must be built.

  alias Skillbook.{
    Agent,
    Catalog,
    Command,
    Declaration,
    Extractor,
    Flags,
    Frontmatter,
    Help,
    Lint,
    Model,
    Preflight,
    Profile,
    Result,
    Router,
    Schedule,
    Source,
    SQL,
    Store,
    Test,
    Tools,
    Transcript,
    Vault,
    View,
    Web,
    Workflow
  }

  alias Skillbook.Calendar.CalDAV.Events
  alias Skillbook.Calendar.ICalendar
  alias Skillbook.Connections.Library
  alias Skillbook.Handlers.Tasks.Task
  alias Skillbook.HTTP.Response
  alias Skillbook.Package.Archive.Tar
  alias Skillbook.Package.Inspection
  alias Skillbook.Prompt.Sections
  alias Skillbook.Support.Number
  alias Skillbook.Web.Request

  @typedoc "A function, a word for what the text is if that is not plain, and the call."
  @type row :: {{module(), atom()}, String.t(), (String.t() -> term())}

  # Functions whose texts are short by nature, or that only pass them on to one in the table.
  @elsewhere %{
    {Skillbook, :approve} => "a reference, which the database looks up",
    {Skillbook, :approvals} => "the id of a profile is compared",
    {Skillbook, :deny} => "a reference, which the database looks up",
    {Skillbook, :fetch_view} => "the id of a profile is compared",
    {Skillbook, :pause_schedule} => "a name, as of View.fetch/2",
    {Skillbook, :reset_breaker} => "a name, as of View.fetch/2",
    {Skillbook, :resume_schedule} => "a name, as of View.fetch/2",
    {Skillbook, :run_schedule} => "a name, as of View.fetch/2",
    {Task, :to_place} => "one of the four orders",
    {Skillbook, :start_link} => "options of the application",
    {Skillbook, :view} => "the id of a profile is compared",
    {Skillbook.CLI, :main} => "ends the process; run/1 does the work",
    {Skillbook.CLI, :run} => "words of a command line of a person; limited by the system",
    {Skillbook.Connections, :authorize} => "names and an address of the application",
    {Skillbook.Connections, :complete} => "a state and a code of at most 4,096 bytes",
    {Skillbook.Connections, :disconnect} => "names are compared",
    {Skillbook.MCP.Client, :approve} => "labels and names are compared",
    {Skillbook.MCP.Client, :read} => "labels, names and paths are compared",
    {Skillbook.MCP.Client, :revoke} => "labels and names are compared",
    {Skillbook.Connections, :list} => "the id of a profile is compared",
    {Skillbook.Connections, :services} => "the id of a profile is compared",
    {Skillbook.Connections, :token} => "scopes of the library are compared",
    {Skillbook.Connections.Account, :url} => "a URL of a vendor's client",
    {Skillbook.Connections.Plug, :call} => "a request, whose size the application limits",
    {Skillbook.Connections.Google, :scopes} => "the name of a command is compared",
    {Skillbook.Connections.Microsoft, :scopes} => "the name of a command is compared",
    {Skillbook.Connections.HubSpot, :scopes} => "the name of a command is compared",
    {Library, :imap_open} => "an account of the application",
    {Library, :smtp_utf8} => "opens a connection of an account",
    {Library, :smtp_send} => "opens a connection, and sends a mail of mime_build/1",
    {Skillbook.Catalog, :refresh} => "paths of changed files",
    {Skillbook.Calendar.TimeZones, :fetch} => "the name of a zone; only 40 bytes are compared",
    {Skillbook.Calendar.TimeZones, :local} => "the name of a zone is looked up",
    {Skillbook.Calendar.TimeZones, :shift} => "the name of a zone is looked up",
    {Skillbook.Context, :report} => "passes a handler's text on to its caller",
    {Skillbook.Document, :create} => "writes a file",
    {Skillbook.Document, :discard} => "moves a file",
    {Skillbook.Document, :open} => "opens a file",
    {Skillbook.Document, :read} => "reads a file",
    {Skillbook.Document, :replace} => "writes a file",
    {Skillbook.Embedder, :embed} => "passes texts on to an embedder",
    {Skillbook.Embedder.Function, :new} => "the name of a model",
    {Skillbook.Embedder.Local, :new} => "a folder",
    {Skillbook.Embedder.Local, :new!} => "a folder",
    {Skillbook.Firing, :new} => "only makes a struct",
    {Skillbook.Model, :chat} => "passes messages on to a model",
    {Skillbook.Model.Script, :new} => "answers of a test",
    {Skillbook.Oban, :insert} => "passes the line on to Router.route/2",
    {Skillbook.Oban, :changeset} => "passes the line on to Router.route/2",
    {Skillbook.Oban, :insert_run} => "passes the input on to Agent.run/3, in a job",
    {Skillbook.Package, :export} => "a name and a folder",
    {Skillbook.Package, :find} => "an address, given by a person",
    {Skillbook.Package, :install} => "an address, given by a person",
    {Skillbook.Package, :installed} => "a folder",
    {Skillbook.Package, :search} => "addresses and words, given by a person",
    {Skillbook.Package, :publish} => "a folder and names, given by a person",
    {Skillbook.Package, :into_store} => "an address, given by a person",
    {Skillbook.Package, :outdated} => "names, given by a person",
    {Skillbook.Package, :remove} => "names, given by a person",
    {Skillbook.Package, :restore} => "names, given by a person",
    {Skillbook.Package, :update} => "names, given by a person",
    {Skillbook.ReturnedError, :new} => "an answer of the application's code",
    {Skillbook.SQL, :execute_batch} => "SQL of the application",
    {Skillbook.SQL, :transaction} => "SQL of the application",
    {Skillbook.SQL.Postgres, :listen} => "the name of a channel",
    {Skillbook.SQL.Migrations, :run} => "SQL of the library",
    {Skillbook.SQL.Migrations, :undo} => "SQL of the library",
    {Skillbook.Source, :from_json} => "a path",
    {Skillbook.Source, :list} => "paths of the application",
    {Skillbook.Source, :new} => "a path of the application",
    {Skillbook.Source, :new!} => "a path of the application",
    {Skillbook.Telemetry, :attach_default_logger} => "options",
    {Skillbook.Telemetry, :attach_open_telemetry} => "options",
    {Skillbook.Telemetry, :gen_ai} => "metadata of an event",
    {Skillbook.Test, :assert_asked} => "words of a test",
    {Skillbook.Test, :assert_ran} => "words of a test",
    {Skillbook.Test, :read_evaluations} => "paths, given by a person",
    {Skillbook.Test, :recording} => "words of a test",
    {Skillbook.Test, :refute_asked} => "words of a test",
    {Skillbook.Test, :refute_ran} => "words of a test",
    {Skillbook.Test, :run_skill} => "words of a test",
    {Skillbook.Agent, :hand_over} => "an id, which it compares, and a reason, which it cuts",
    {Skillbook.Agent.Runs, :continue} => "a reference, which the database looks up",
    {Skillbook.Agent.Runs, :fetch} => "a reference, which the database looks up",
    {Skillbook.Agent.Runs, :stop} => "a reference, which the database looks up",
    {Skillbook.Conversation, :approve} => "a reference, as of Skillbook.approve/3",
    {Skillbook.Conversation, :ask} => "a text, as of Agent.run/3",
    {Skillbook.Conversation, :deny} => "a reference, as of Skillbook.deny/3",
    {Skillbook.Conversation, :say} => "a text, as of Agent.run/3",
    {Skillbook.Test, :view} => "words of a test",
    {Skillbook.Transcript.Log, :read} => "a path",
    {Skillbook.Vault, :sync} => "the name of a vault",
    {Skillbook.Web.Plug, :call} => "a request, which it passes on to Web.call/2",
    {Skillbook.Web.Caller, :seen_as} => "the id of a profile is compared",
    {Skillbook.Web.Tokens, :revoke} => "an id, which the database looks up"
  }

  @doc """
  The public functions that take text, according to their specs, and are not in the table; and
  those of the table that do not exist.
  """
  @spec missing([row()]) :: {[{module(), atom()}], [{module(), atom()}]}
  def missing(rows) do
    public = public()
    listed = Enum.uniq(Map.keys(@elsewhere) ++ Enum.map(rows, &elem(&1, 0)))
    taking = for {function, true} <- public, do: function
    {Enum.sort(taking -- listed), Enum.sort(Enum.reject(listed -- Map.keys(public), &private?/1))}
  end

  # Functions inside of the library may be measured too.
  defp private?({module, function}) do
    Code.ensure_loaded?(module) and Keyword.has_key?(module.module_info(:exports), function) and
      match?({:docs_v1, _, _, _, :hidden, _, _}, Code.fetch_docs(module))
  end

  @text [:binary, :bitstring, :iodata, :iolist, :map, :term, :any]
  @remote [{String, :t}, {Path, :t}]

  # Each documented function of a documented module below lib, and whether an argument may be text
  # or hold text.
  defp public do
    for module <- Skillbook.Test.Checkout.modules(),
        {:module, _} = Code.ensure_loaded(module),
        module.module_info(:compile)[:source] |> to_string() |> String.contains?("/lib/"),
        not String.starts_with?(inspect(module), ["Inspect.", "String.Chars.", "Mix."]),
        {:docs_v1, _, _, _, doc, _, docs} <- [Code.fetch_docs(module)],
        doc != :hidden or module == Library,
        {{:function, name, arity}, _, _, doc, _} <- docs,
        doc != :hidden,
        reduce: %{} do
      found ->
        Map.update(
          found,
          {module, name},
          text?(module, name, arity),
          &(&1 or text?(module, name, arity))
        )
    end
  end

  defp text?(module, name, arity) do
    {:ok, specs} = Code.Typespec.fetch_specs(module)
    {:ok, types} = Code.Typespec.fetch_types(module)
    # Structs are made by the library, and have no text of a stranger that it has not read.
    own = for {_, {name, type, []}} <- types, elem(type, 2) != :map, into: %{}, do: {name, type}

    with {_, specs} <- Enum.find(specs, fn {key, _} -> key == {name, arity} end) do
      Enum.any?(specs, fn spec -> spec |> arguments() |> Enum.any?(&in_type?(&1, own, 3)) end)
    else
      # A function without a spec, like a callback, has no text of its own.
      nil -> false
    end
  end

  defp arguments({:type, _, :bounded_fun, [spec, _]}), do: arguments(spec)
  defp arguments({:type, _, :fun, [{:type, _, :product, arguments}, _]}), do: arguments

  defp in_type?({:type, _, type, []}, _own, _depth) when type in @text, do: true
  defp in_type?({:type, _, :map, :any}, _own, _depth), do: true
  # Options and callbacks.
  defp in_type?({:type, _, type, _}, _own, _depth) when type in [:fun, :keyword], do: false
  defp in_type?({:remote_type, _, [_, {:atom, _, :keyword}, _]}, _own, _depth), do: false

  defp in_type?({:remote_type, _, [{:atom, _, module}, {:atom, _, type}, _]}, _own, _depth),
    do: {module, type} in @remote or {module, type} == {Skillbook.HTTP, :request}

  defp in_type?({:user_type, _, name, _}, own, depth) when depth > 0,
    do: is_map_key(own, name) and in_type?(own[name], own, depth - 1)

  defp in_type?({:ann_type, _, [_, type]}, own, depth), do: in_type?(type, own, depth)

  defp in_type?({:type, _, _, parts}, own, depth) when is_list(parts),
    do: Enum.any?(parts, &in_type?(&1, own, depth))

  defp in_type?(_type, _own, _depth), do: false

  @doc "The table, over a book and a catalog with their files below a folder."
  @spec rows(map()) :: [row()]
  def rows(%{view: view, book: book, catalog: catalog, folder: folder}) do
    entry = View.fetch!(view, "pages.plain")
    {:ok, declaration} = View.flags(view, "pages.flags")
    sql = Skillbook.Book.sql(Skillbook.Book.fetch!(book))
    hit = %Vault.Hit{vault: "v", path: "p", title: "t", snippet: "a text", highlights: [{2, 4}]}
    flags = &%{"x" => &1}

    texts(view, catalog, sql) ++
      pages(view, entry, declaration, folder) ++
      flags(flags, declaration, view) ++
      stored(view, book, hit) ++
      web(book) ++
      numbers(book) ++
      strangers()
  end

  @doc """
  Every flag of every command of the library, as a function of its value. The accounts of the
  commands for mail, calendars, files and customers have no server, so these read their flags
  only.
  """
  @spec flags((keyword() -> term())) :: [row()]
  def flags(start) do
    book = :"hostile_flags_#{System.unique_integer([:positive])}"
    account = [token: fn -> "t" end, url: "http://127.0.0.1:1", retries: 0]
    none = fn services -> [quota: Enum.map(services, &{&1, :infinity})] end

    start.(
      name: book,
      builtins: true,
      store: ":memory:",
      breaker: false,
      watch: false,
      connections: [
        google:
          [vendor: Skillbook.Test.GoogleVendor] ++ none.([:gmail, :calendar, :drive]) ++ account,
        hubspot: [vendor: Skillbook.Connections.HubSpot] ++ none.([:hubspot, :search]) ++ account
      ],
      vaults: [[name: "drive"]],
      profiles: [[id: "default", approved: ["*"], description: "Mail of the house"]]
    )

    {:ok, _} = Store.put_note(Skillbook.view(book), "Milk", "Two bottles.")
    view = Skillbook.view(book)

    for %{kind: :command} = entry <- View.entries(view),
        {:ok, %{flags: _} = declaration} <- [View.flags(view, entry.name)],
        flag <- declaration.flags do
      {:ok, routed} = Router.route(view, entry.name)
      others = for other <- declaration.flags, other.required, into: %{}, do: {other.name, "1"}

      call = fn text ->
        command = %{routed.command | flags: Map.put(others, flag.name, text)}
        routed = %{routed | command: command}
        Skillbook.Executor.execute(routed, Skillbook.Executor.context(view, routed))
      end

      {{Skillbook.Executor, :execute}, "#{entry.name} --#{flag.name}", call}
    end
  end

  defp web(book) do
    {:ok, web} = Skillbook.Web.listen(Skillbook.Web.new!(book: book), :unix)
    form = [{"content-type", "application/x-www-form-urlencoded"}]
    multipart = [{"content-type", "multipart/form-data; boundary=b"}]
    disposition = "content-disposition: form-data; name=\"a\""
    get = fn path, headers -> %Request{path: path, headers: headers} end

    login = fn headers, body ->
      %Request{method: "POST", path: ["login"], headers: headers, body: body}
    end

    [
      {{Web, :call}, "query", &Web.call(%{get.(["login"], []) | query: &1}, web)},
      {{Web, :call}, "path", &Web.call(get.([&1], []), web)},
      {{Web, :call}, "cookie", &Web.call(get.(["a"], [{"cookie", &1}]), web)},
      {{Web, :call}, "token",
       &Web.call(get.(["api"], [{"authorization", "Bearer sb_" <> &1}]), web)},
      {{Web, :call}, "if-none-match",
       &Web.call(get.(["api", "skills"], [{"if-none-match", &1}]), %{web | authenticate: :none})},
      {{Web, :call}, "form", &Web.call(login.(form, &1), web)},
      {{Request, :query}, "", &Request.query(%Request{query: &1})},
      {{Request, :form}, "", &Request.form(login.(form, &1))},
      {{Request, :form}, "multipart",
       &Request.form(login.(multipart, "--b\r\n#{disposition}\r\n\r\n#{&1}\r\n--b--"))},
      {{Request, :form}, "head of a part",
       &Request.form(login.(multipart, "--b\r\n#{disposition}#{&1}\r\n\r\nx\r\n--b--"))},
      {{Request, :form}, "type", &Request.form(login.([{"content-type", &1}], "x"))},
      {{Request, :json}, "", &Request.json(%Request{body: &1})},
      {{Request, :header}, "", &Request.header(get.([], [{"a", &1}, {"a", "b"}]), "a")},
      {{Request, :cookie}, "", &Request.cookie(get.([], [{"cookie", &1}]), "a")},
      {{Request, :wants_json?}, "", &Request.wants_json?(get.([], [{"accept", &1}]))},
      {{Request, :path}, "", &Request.path(%Request{}, [&1], a: &1)},
      {{Request, :url}, "", &Request.url(%Request{host: "a"}, web, [&1])},
      {{Web.Response, :html}, "", &Web.Response.html(200, &1)},
      {{Web.Response, :text}, "", &Web.Response.text(200, &1)},
      {{Web.Response, :json}, "", &Web.Response.json(200, &1)},
      {{Web.Response, :error}, "", &Web.Response.error(%Request{}, 400, &1)},
      {{Web.Response, :redirect}, "", &rescued(fn -> Web.Response.redirect(303, &1) end)},
      {{Web.Response, :put_header}, "",
       &rescued(fn -> Web.Response.put_header(%Web.Response{}, "a", &1) end)},
      {{Web.Response, :vary}, "",
       &rescued(fn -> Web.Response.vary(%Web.Response{headers: [{"vary", &1}]}, &1) end)}
    ]
  end

  # Numbers in archives, in fields of forms and in queries of pages.
  defp numbers(book) do
    web = Skillbook.Test.Requests.web(book)
    call = &Skillbook.Test.Requests.call(web, &1, &2, [as: "default"] ++ &3)
    post = fn path, field, text -> call.("POST", path, form: %{field => text}) end

    [
      {{Number, :integer}, "", &Number.integer/1},
      {{Number, :integer}, "of base 16", &Number.integer(&1, 16)},
      {{Number, :float}, "", &Number.float/1},
      {{Tar, :read}, "pax", &Tar.read(tar([{?x, &1}, {?0, "a"}]), "a")},
      {{Tar, :read}, "pax of all", &Tar.read(tar([{?g, &1}, {?0, "a"}]), "a")},
      {{Tar, :read}, "length of a record", &Tar.read(tar([{?x, "#{&1} path=a\n"}]), "a")},
      {{Tar, :read}, "size", &Tar.read(tar([{?x, record("size", &1)}, {?0, "a"}]), "a")},
      {{Web, :call}, "version to delete", &post.("/skills/milk/delete", "version", &1)},
      {{Web, :call}, "version to restore", &post.("/skills/milk/restore", "version", &1)},
      {{Web, :call}, "version of an edit", &post.("/skills/milk/edit", "version", &1)},
      {{Web, :call}, "version of a page", &call.("GET", "/skills/milk/versions/" <> word(&1), [])}
      | for path <- ~w(/skills?page= /runs?page= /prompt?max_tokens= /api/skills?limit=) do
          {{Web, :call}, path, &call.("GET", path <> word(&1), [])}
        end
    ]
  end

  defp word(text), do: URI.encode(text, &URI.char_unreserved?/1)

  defp record(key, value) do
    record = " #{key}=#{value}\n"
    size = byte_size(record)
    digits = byte_size("#{size + byte_size("#{size}")}")
    "#{size + digits}#{record}"
  end

  # An archive of entries with a type and a content.
  defp tar(entries) do
    IO.iodata_to_binary([
      for {type, content} <- entries do
        size = content |> byte_size() |> Integer.to_string(8) |> String.pad_leading(11, "0")
        [tar_header(type, size), content, zeros(rem(512 - rem(byte_size(content), 512), 512))]
      end,
      zeros(1024)
    ])
  end

  defp tar_header(type, size) do
    before = [String.pad_trailing("a", 100, "\0"), "0000644\0", zeros(16), size, "\0", zeros(12)]
    behind = [type, zeros(100), "ustar\0", "00", zeros(247)]

    sum =
      for <<byte <- IO.iodata_to_binary([before, "        ", behind])>>,
        reduce: 0,
        do: (n -> n + byte)

    [before, sum |> Integer.to_string(8) |> String.pad_leading(6, "0"), "\0 ", behind]
  end

  defp zeros(count), do: :binary.copy(<<0>>, count)

  defp object(answer) do
    model = Model.Function.new(fn _messages, _options -> answer end)
    schema = %{"type" => "object", "properties" => %{"x" => %{"type" => "string"}}}
    Model.complete_object(model, [%{role: :user, content: "x"}], schema)
  end

  defp texts(view, catalog, sql) do
    context = %Skillbook.Context{
      view: view,
      profile: view.profile,
      entry: nil,
      command: nil,
      now: ~U[2026-02-17 12:00:00Z]
    }

    [
      {{Skillbook, :run}, "reply", &Skillbook.run(view, &1)},
      {{Skillbook, :run}, "command", &Skillbook.run(view, "```cmd\npages.plain #{&1}\n```\n")},
      {{Skillbook, :run}, "prose", &Skillbook.run(view, "Hi <a>. " <> &1, unclosed: :run)},
      {{Skillbook, :carry_out}, "", &Skillbook.carry_out(view, &1)},
      {{Skillbook, :get}, "", &Skillbook.get(view, &1)},
      {{Skillbook, :search}, "", &Skillbook.search(view, &1)},
      {{Skillbook, :prompt}, "message",
       &Skillbook.prompt(view, max_chars: 400, messages: [%{role: :user, content: &1}])},
      {{Skillbook, :prompt}, "nearest", &Skillbook.prompt(view, max_chars: 400, nearest: [&1])},
      {{Skillbook, :prompt}, "preloaded",
       &Skillbook.prompt(view, sections: [:preloaded_skills], preloaded: [&1])},
      {{Skillbook, :prompt}, "section",
       &Skillbook.prompt(view, sections: [[name: "A", text: &1, max_tokens: 1_000_000]])},
      {{Skillbook, :schedule}, "names", &Skillbook.schedule(view, names: [&1])},
      {{Skillbook, :usage}, "names", &Skillbook.usage(view, names: [&1])},
      {{Skillbook, :explain}, "", &Skillbook.explain(catalog, &1, profile: [id: "x"])},
      {{Sections, :text}, "",
       &Sections.text(view, sections: [[name: "A", text: &1, max_tokens: 1_000_000]])},
      {{Sections, :text}, "message", &Sections.text(view, sections: [:memory], message: &1)},
      {{Preflight, :run}, "", &Preflight.run(view, &1)},
      {{Preflight, :profile}, "", &Preflight.profile(view, &1)},
      {{Model, :complete_object}, "answer", &object/1},
      {{Model, :complete_object}, "answer with braces", &object("{" <> &1 <> "}")},
      {{Extractor, :extract}, "", &Extractor.extract/1},
      {{Extractor, :extract}, "in a block", &Extractor.extract("```cmd\n" <> &1)},
      {{Extractor, :feed}, "whole", &fed(&1, byte_size(&1))},
      {{Extractor, :feed}, "in pieces of 128 bytes", &fed(&1, 128)},
      {{Command, :parse}, "", &Command.parse/1},
      {{Command, :parse}, "JSON", &Command.parse("x {\"a\": [" <> &1)},
      {{Command, :parse!}, "", &rescued(fn -> Command.parse!(&1) end)},
      {{Command, :tokenize}, "", &Command.tokenize/1},
      {{Router, :route}, "", &Router.route(view, &1)},
      {{Router, :route}, "flags", &Router.route(view, "pages.flags " <> &1)},
      {{Tools, :call}, "name", &Tools.call(view, %{"name" => &1, "arguments" => %{}})},
      {{Tools, :call}, "arguments",
       &Tools.call(view, %{"function" => %{"name" => "pages__plain", "arguments" => &1}})},
      {{Tools, :call}, "value",
       &Tools.call(view, %{"name" => "pages__plain", "arguments" => %{"x" => &1}})},
      {{Help, :get}, "", &Help.get(view, &1)},
      {{Help, :domain}, "", &Help.domain(view, &1)},
      {{Help, :domain_all}, "", &Help.domain_all(view, &1)},
      {{Help, :skill}, "", &Help.skill(view, &1)},
      {{Profile, :narrow}, "", &View.new(catalog, Profile.narrow(view.profile, [&1]))},
      {{Test, :assert_routes}, "",
       &rescued(fn -> Test.assert_routes(view, &1, "pages.plain") end)},
      {{Test, :assert_routes}, "name", &rescued(fn -> Test.assert_routes(view, "a", &1) end)},
      {{Test, :refute_routes}, "", &rescued(fn -> Test.refute_routes(view, &1) end)},
      {{Test, :refute_routes}, "name", &Test.refute_routes(view, "zebra", &1)},
      {{View, :fetch}, "", &View.fetch(view, &1)},
      {{View, :fetch!}, "", &rescued(fn -> View.fetch!(view, &1) end)},
      {{View, :examples}, "", &View.examples(view, &1)},
      {{View, :flags}, "", &View.flags(view, &1)},
      {{View, :frontmatter}, "", &View.frontmatter(view, &1)},
      {{View, :tools}, "", &View.tools(view, &1)},
      {{View, :allows_tool?}, "", &View.allows_tool?(view, "pages.tools", &1, &1)},
      {{Agent, :run}, "message", &agent(view, &1, "Done.")},
      {{Agent, :run}, "reply", &agent(view, "Hi", &1)},
      {{Transcript, :new}, "", &Transcript.new/1},
      {{Transcript, :from_json}, "", &Transcript.from_json/1},
      {{Transcript, :from_json}, "messages",
       &Transcript.from_json(~s({"version":1,"messages":[) <> &1)},
      {{Result, :ok}, "", &Result.ok/1},
      {{Response, :header}, "", &Response.header([{"a", &1}, {"b", "c"}], "a")},
      {{Skillbook.HTTP, :request}, "URL", &request("http://127.0.0.1:1/" <> &1)},
      {{Skillbook.HTTP, :stream}, "URL", &request("http://" <> &1)},
      {{SQL, :query}, "", &SQL.query(sql, &1)},
      {{SQL, :query!}, "", &rescued(fn -> SQL.query!(sql, "select '" <> &1) end)},
      {{SQL, :query_all}, "", &SQL.query_all(sql, [{"select ? /*" <> &1, [&1]}])},
      {{Schedule, :parse}, "", &Schedule.parse/1},
      {{Schedule, :parse}, "time zone", &Schedule.parse("* * * * *", &1)},
      {{Schedule, :parse!}, "", &rescued(fn -> Schedule.parse!(&1) end)},
      {{Task, :assignee}, "", &Task.assignee(&1, context)},
      {{Task, :cast_id}, "", &Task.cast_id(%{"x" => &1}, "x")},
      {{Task, :place}, "", &Task.place(&1, "due_date")}
    ]
  end

  defp pages(view, entry, declaration, folder) do
    {:ok, command} = Command.parse("pages.plain")

    [
      {{Frontmatter, :parse}, "", &Frontmatter.parse/1},
      {{Frontmatter, :parse}, "in the block", &Frontmatter.parse("---\n#{&1}\n---\n")},
      {{Frontmatter, :parse!}, "",
       &rescued(fn -> Frontmatter.parse!("---\na: #{&1}\n---\n") end)},
      {{Frontmatter, :write}, "value", &Frontmatter.write(%{"a" => &1}, "b")},
      {{Frontmatter, :write}, "body", &Frontmatter.write(%{"a" => "b"}, &1)},
      {{Declaration, :read}, "", &Declaration.read/1},
      {{Catalog, :load}, "body", &load(folder, "---\nname: p\ndescription: d\n---\n" <> &1)},
      {{Catalog, :load}, "frontmatter", &load(folder, "---\nname: p\n#{&1}\n---\nx\n")},
      {{Lint, :run}, "body", &lint(folder, "---\nname: p\ndescription: d\n---\n" <> &1)},
      {{Lint, :run}, "flags",
       &lint(
         folder,
         "---\nname: p.q\ndescription: d\n---\n## Flags\n\n#{&1}\n## Usage\n\n#{&1}"
       )},
      {{Lint, :fix}, "", &fix(folder, "---\nname: p\ndescription: d\n---\n" <> &1)},
      {{Workflow, :lines}, "", &Workflow.lines(%{entry | body: "## Behavior\n\n" <> &1})},
      {{Workflow, :read}, "",
       &Workflow.read(%{entry | body: "## Behavior\n\n" <> &1}, declaration)},
      {{Workflow, :workflow?}, "", &Workflow.workflow?(%{entry | body: "## Behavior\n\n" <> &1})},
      {{Workflow, :plan}, "",
       &Workflow.plan(
         %{entry | body: "## Behavior\n\n" <> &1},
         command,
         plan_context(view, entry)
       )},
      {{Inspection, :new}, "text", &Inspection.new([{"SKILL.md", &1, false}])},
      {{Inspection, :new}, "script", &Inspection.new([{"a.sh", "#!/bin/sh\n" <> &1, true}])},
      {{Inspection, :grown}, "", &Inspection.grown(Inspection.new([]), [&1])}
    ]
  end

  defp flags(flags, declaration, view) do
    {:ok, today} = Date.new(2026, 2, 17)
    # Splitting is not what is measured.
    words = &String.split(&1, " ", parts: 2_000)
    many = fn text -> for word <- words.(text), into: %{}, do: {word, text} end

    schema = "{anyOf: [{type: array, items: {pattern: '^(a+)+$'}}, {type: object}]}"
    structured = Declaration.read("---\nflags: {x: {schema: #{schema}}}\n---\n")

    [
      {{Flags, :cast}, "", &Flags.cast(flags.(&1), "x", "a", "b", fn _ -> :error end)},
      {{Flags, :cast_args}, "", &Flags.cast_args(%{}, words.(&1), ["x"])},
      {{Flags, :cast_args}, "flags", &Flags.cast_args(many.(&1), [], ["x"])},
      {{Flags, :known}, "", &Flags.known(many.(&1), ["query", "due-before"])},
      {{Flags, :known}, "value", &Flags.known(flags.(words.(&1)), ["x", "query"])},
      {{Flags, :require}, "", &Flags.require(many.(&1), ["query"])},
      {{Flags, :require_any}, "", &Flags.require_any(many.(&1), ["query", "x"])},
      {{Flags, :validate_enum}, "", &Flags.validate_enum(flags.(&1), "x", ["a", "b"])},
      {{Flags, :apply_defaults}, "", &Flags.apply_defaults(many.(&1), flags.(&1))},
      {{Flags, :check}, "", &Flags.check(many.(&1), declaration, words.(&1))},
      {{Flags, :cast_declared}, "", &Flags.cast_declared(many.(&1), declaration, today: today)},
      {{Flags, :cast_declared}, "structured", &Flags.cast_declared(%{"x" => &1}, structured)},
      {{Flags, :cast_declared}, "value",
       &Flags.cast_declared(
         %{"text" => &1, "date" => &1, "count" => &1, "one" => &1, "switch" => &1},
         declaration,
         today: today
       )},
      {{View, :flags}, "of the view", &View.flags(view, &1)}
    ] ++
      for name <- [
            :cast_boolean,
            :cast_date,
            :cast_datetime,
            :cast_email,
            :cast_emails,
            :cast_url,
            :cast_integer,
            :cast_keyword,
            :cast_list,
            :cast_number,
            :cast_text
          ] do
        {{Flags, name}, "", &apply(Flags, name, [flags.(&1), "x"])}
      end ++ [{{Flags, :cast_one_of}, "", &Flags.cast_one_of(flags.(&1), "x", ["a", "b"])}]
  end

  defp stored(view, book, hit) do
    [
      {{Store, :create}, "title", &Store.create(view, %{title: &1, content: "x"})},
      {{Store, :create}, "description",
       &Store.create(view, %{title: "x", description: &1, content: "x"})},
      {{Store, :create}, "others",
       &Store.create(view, %{title: "x", tags: [&1], labels: [&1], schedule: &1, content: "x"})},
      {{Store, :create}, "content",
       &Store.create(view, %{name: "Not a name", title: &1, content: &1})},
      {{Store, :update}, "name", &Store.update(view, &1, %{})},
      {{Store, :update}, "replaced", &Store.update(view, "milk", %{edit: {:replace, &1}})},
      {{Store, :update}, "found",
       &Store.update(view, "bread", %{edit: {:find_replace, &1, "x", all?: true}})},
      {{Store, :put_note}, "title", &Store.put_note(view, &1, "x")},
      {{Store, :put_note}, "content", &Store.put_note(view, "Milk", &1)},
      {{Store, :put_note}, "frontmatter", &Store.put_note(view, "Milk", "---\n#{&1}\n---\nx")},
      {{Store, :delete}, "", &Store.delete(view, &1)},
      {{Store, :disable}, "", &Store.disable(view, &1)},
      {{Store, :enable}, "", &Store.enable(view, &1)},
      {{Store, :restore}, "", &Store.restore(view, &1, 1)},
      {{Store, :fetch}, "", &Store.fetch(view, &1)},
      {{Store, :history}, "", &Store.history(view, &1)},
      {{Store, :version}, "", &Store.version(view, &1, 1)},
      {{Store, :diff}, "", &Store.diff(view, &1, 1, 2)},
      {{Vault, :create}, "title", &Vault.create(view, %{title: &1, content: "x", vault: "none"})},
      {{Vault, :create}, "content",
       &Vault.create(view, %{title: "Plan", content: &1, vault: "notes"})},
      {{Vault, :create}, "folder",
       &Vault.create(view, %{title: "Plan", folder: &1, content: "x", vault: "notes"})},
      {{Vault, :put}, "tags",
       &Vault.put(book, "drive", %{id: "4", content: "---\ntags: [#{&1}]\n---\n##{&1}"})},
      {{Vault, :put}, "body", &Vault.put(book, "drive", %{id: "1", content: &1})},
      {{Vault, :put}, "frontmatter",
       &Vault.put(book, "drive", %{id: "2", content: "---\n#{&1}\n---\nx"})},
      {{Vault, :put}, "path", &Vault.put(book, "drive", %{id: "3", path: &1, content: "x"})},
      {{Vault, :delete}, "", &Vault.delete(book, "drive", &1)},
      {{Vault, :read}, "name", &Vault.read(view, &1)},
      {{Vault, :edit}, "name", &Vault.edit(view, &1, {:append, "x"})},
      {{Vault, :edit}, "text",
       &Vault.edit(view, "Plan.md", {:find_replace, &1, "x", all?: true})},
      {{Vault, :open_file}, "path",
       &Vault.open_file(view, "vault:notes/" <> &1, fn _file -> :ok end)},
      {{Vault, :save_file}, "", &Vault.save_file(view, &1, fn _device, _max -> :ok end)},
      {{Vault, :search}, "", &Vault.search(view, &1)},
      {{Vault, :search}, "filters", &Vault.search(view, "plan", tags: [&1], folder: &1)},
      {{Vault.Hit, :marked}, "", &Vault.Hit.marked(hit, &1, &1)}
    ]
  end

  # An event with some lines, in a calendar with some more, as a server sends it.
  defp event(lines, zone \\ "") do
    text =
      "BEGIN:VCALENDAR\r\n#{zone}BEGIN:VEVENT\r\nUID:a\r\nDTSTART;TZID=Own:20260302T090000\r\n" <>
        "#{lines}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"

    with {:ok, calendar} <- ICalendar.parse(text) do
      resource = %{file: "a.ics", version: "1", calendar: calendar}
      week = [~U[2026-03-01 00:00:00Z], ~U[2026-03-08 00:00:00Z]]

      ICalendar.budgeted(fn ->
        Events.readable?(resource) && apply(Events, :between, [resource | week] ++ ["UTC", 100])
      end)
    end
  end

  defp zone(lines) do
    "BEGIN:VTIMEZONE\r\nTZID:Own\r\nBEGIN:STANDARD\r\nDTSTART:16010101T030000\r\n" <>
      "TZOFFSETFROM:+0200\r\nTZOFFSETTO:+0100\r\n#{lines}\r\nEND:STANDARD\r\n" <>
      "END:VTIMEZONE\r\n"
  end

  # The native functions that read mails, web pages and calendars, and events of servers.
  defp strangers do
    dates = &Library.ical_dates(&1, 1_772_442_000, 1_772_442_000, 1_900_000_000, 500, 1_000)

    [
      {{Library, :decode}, "UTF-8", &Library.decode(&1, "utf-8")},
      {{Library, :decode}, "UTF-7", &Library.decode(&1, "utf-7")},
      {{Library, :decode}, "escapes", &Library.decode("\e$B" <> &1, "iso-2022-jp")},
      {{Library, :decode}, "set", &Library.decode("a", &1)},
      {{Library, :mime_parse}, "", &Library.mime_parse/1},
      {{Library, :mime_parse}, "text", &Library.mime_parse("Subject: a\r\n\r\n" <> &1)},
      {{Library, :mime_parse}, "addresses", &Library.mime_parse("To: #{&1}\r\n\r\na")},
      {{Library, :mime_parse}, "words", &Library.mime_parse("Subject: =?utf-8?q?#{&1}\r\n\r\n")},
      {{Library, :mime_parse}, "ids", &Library.mime_parse("References: <#{&1}>\r\n\r\n")},
      {{Library, :mime_parse}, "type",
       &Library.mime_parse("Content-Type: text/plain; name*0=#{&1}\r\n\r\na")},
      {{Library, :mime_parse}, "parts", &Library.mime_parse(multipart(&1, "a"))},
      {{Library, :mime_parse}, "between parts", &Library.mime_parse(multipart("a", &1))},
      {{Library, :mime_part}, "", &Library.mime_part(&1, 1)},
      {{Library, :mime_part}, "encoded",
       &Library.mime_part("Content-Transfer-Encoding: quoted-printable\r\n\r\n" <> &1, 0)},
      {{Library, :mime_build}, "text", &Library.mime_build(mail(%{text: &1, html: &1}))},
      {{Library, :mime_build}, "headers",
       &Library.mime_build(mail(%{subject: &1, to: [%{name: &1, address: "a@example.com"}]}))},
      {{Library, :html_text}, "", &Library.html_text/1},
      {{Library, :html_text}, "in an element", &Library.html_text("<p><a href=\"" <> &1)},
      {{Library, :html_text}, "style", &Library.html_text("<style>#{&1}</style><p class=a>b")},
      {{Library, :html_text}, "styles", &Library.html_text("<p style='#{&1}'>b")},
      {{Library, :html_text}, "table", &Library.html_text("<table><tr><td>" <> &1)},
      {{Library, :markdown_html}, "", &Library.markdown_html/1},
      {{Library, :xml_elements}, "", &Library.xml_elements/1},
      {{Library, :xml_elements}, "text", &Library.xml_elements("<a>#{&1}</a>")},
      {{Library, :xml_elements}, "CDATA", &Library.xml_elements("<a><![CDATA[#{&1}]]></a>")},
      {{Library, :xml_elements}, "attribute", &Library.xml_elements("<a b='#{&1}'/>")},
      {{ICalendar, :parse}, "", &ICalendar.parse/1},
      {{ICalendar, :parse}, "line", &ICalendar.parse("BEGIN:VCALENDAR\r\n#{&1}")},
      {{Events, :between}, "lines", &event/1},
      {{Events, :between}, "EXDATE", &event("RRULE:FREQ=DAILY\r\nEXDATE:" <> &1)},
      {{Events, :between}, "RDATE", &event("RDATE:" <> &1)},
      {{Events, :between}, "RRULE", &event("RRULE:FREQ=WEEKLY;BYDAY=" <> &1)},
      {{Events, :between}, "DURATION", &event("DURATION:P" <> &1)},
      {{Events, :between}, "ATTENDEE", &event("ATTENDEE;CN=#{&1}:mailto:#{&1}")},
      {{Events, :between}, "zone", &event("RRULE:FREQ=DAILY", zone(&1))},
      {{Events, :between}, "rule of a zone",
       &event("RRULE:FREQ=DAILY", zone("RRULE:FREQ=YEARLY;BYMONTH=" <> &1))},
      {{Events, :between}, "dates of a zone", &event("RRULE:FREQ=DAILY", zone("RDATE:" <> &1))},
      {{Events, :between}, "offset", &event("RRULE:FREQ=DAILY", zone("TZOFFSETTO:+" <> &1))},
      {{Library, :ical_dates}, "", dates},
      {{Library, :ical_dates}, "rule", &dates.("FREQ=DAILY;BYDAY=" <> &1)}
    ]
  end

  defp multipart(inside, between) do
    "Content-Type: multipart/mixed; boundary=b\r\n\r\n#{between}\r\n--b\r\n\r\n" <>
      "#{inside}\r\n--b\r\n#{between}\r\n--b--\r\n"
  end

  defp mail(fields) do
    fields = Map.merge(%{to: [], subject: "a", text: "b", html: nil}, fields)

    Map.merge(fields, %{
      from: nil,
      cc: [],
      bcc: [],
      reply_to: [],
      date: 0,
      message_id: "1@example.com",
      in_reply_to: [],
      references: [],
      attachments: []
    })
  end

  defp fed(text, size) do
    state =
      text
      |> chunks(size)
      |> Enum.reduce(Extractor.new(), &elem(Extractor.feed(&2, &1), 1))

    Extractor.finish(state)
  end

  defp chunks(text, size) when byte_size(text) <= size, do: [text]

  defp chunks(text, size) do
    {chunk, rest} = {binary_part(text, 0, size), binary_part(text, size, byte_size(text) - size)}
    [chunk | chunks(rest, size)]
  end

  defp agent(view, input, reply) do
    model = Skillbook.Model.Function.new(fn _messages, _options -> reply end)
    Agent.run(view.book, input, model: model, max_turns: 1)
  end

  defp request(url), do: Skillbook.HTTP.request([url: url], adapter: __MODULE__.NoHTTP)

  defmodule NoHTTP do
    @moduledoc false
    # Refuses every connection, so that only the URL is read.
    def stream(_request, _settings, _options, acc, _fun),
      do: {:error, %Skillbook.HTTP.Error{kind: :connect, reason: "refused"}, acc}
  end

  defp rescued(call) do
    call.()
  rescue
    error -> error
  end

  defp plan_context(view, entry) do
    %Skillbook.Context{
      view: view,
      profile: view.profile,
      entry: entry,
      command: nil,
      now: ~U[2026-02-17 12:00:00Z]
    }
  end

  # The page of a skill, whose links are read too, and of a command.
  defp page(folder, text) do
    folder = Path.join(folder, "page")
    File.mkdir_p!(Path.join(folder, "p"))
    File.write!(Path.join(folder, if(text =~ "name: p.q", do: "q.md", else: "p/SKILL.md")), text)
    folder
  end

  defp load(folder, text) do
    {:ok, catalog} = Catalog.load([page(folder, text)])
    Catalog.diagnostics(catalog)
  end

  defp lint(folder, text), do: Lint.run([page(folder, text)], strict: true)
  defp fix(folder, text), do: Lint.fix([page(folder, text)], [])

  @doc "Starts what the table needs, in a folder, with a function that starts a book."
  @spec world(Path.t(), (keyword() -> term())) :: map()
  def world(folder, start) do
    skills = Path.join(folder, "skills/pages")
    notes = Path.join(folder, "notes")
    for new <- [skills, notes], do: File.mkdir_p!(new)

    for {name, fields, body} <- [
          {"plain", "", "Text.\n"},
          {"tools", "allowed-tools: Bash(git *) Read\n", "Text.\n"},
          {"flags", "strict: true\n",
           """
           ## Flags

           - `--text <text>` - a text
           - `--date <date>` - a date
           - `--count <integer>` - a number
           - `--one <a|b>` - one of two
           - `--switch` - a switch
           """}
        ] do
      text = "---\nname: pages.#{name}\ndescription: d\n#{fields}---\n# #{name}\n\n#{body}"
      File.write!(Path.join(skills, "#{name}.md"), text)
    end

    File.write!(
      Path.join(notes, "Plan.md"),
      "# Plan\n\n" <> String.duplicate("Sow beans.\n", 500)
    )

    :ok = Library.load()
    book = :"hostile_#{System.unique_integer([:positive])}"

    start.(
      name: book,
      sources: [Path.dirname(skills)],
      builtins: true,
      store: ":memory:",
      vaults: [[path: notes, name: "notes", files: true], [name: "drive"]],
      watch: false
    )

    {:ok, _} = Vault.sync(book, "notes")
    {:ok, catalog} = Catalog.load([Source.builtin(), Path.dirname(skills)])
    view = Skillbook.view(book)
    {:ok, _} = Store.put_note(view, "Milk", "Two bottles.")
    {:ok, _} = Store.put_note(view, "Bread", String.duplicate("One loaf.\n", 500))
    %{book: book, view: Skillbook.view(book), catalog: catalog, folder: folder}
  end
end
