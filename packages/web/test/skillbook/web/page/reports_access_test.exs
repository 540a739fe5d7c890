defmodule Skillbook.Web.Page.ReportsAccessTest do
  # Access to the pages about prompts, runs and problems: an operator sees everything, a profile
  # what its view shows. For a profile without its label, an entry and all that it left behind are
  # as if they had never been: byte for byte.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{View, Workflow}
  alias Skillbook.Support.JSON
  alias Skillbook.Test.{HtmlChecker, Requests}

  @moduletag :tmp_dir
  @moduletag :capture_log

  # In every text of the hidden entries, and in everything that they left behind.
  @mark "zebra"

  @operator [profile: "root", operator: true]
  @pages ~w(/prompt /prompt?format_of=notes /tools /tools?shape=mcp /explain /try /usage
            /usage?days=1 /runs /runs?hours=168 /approvals /approvals?status=all /diagnostics
            /diagnostics?advice=1) ++ ["/route?request=work+on+#{@mark}+reports"]

  setup_all do
    folder = Path.join(System.tmp_dir!(), "reports_access_#{System.unique_integer([:positive])}")
    on_exit(fn -> File.rm_rf!(folder) end)
    with_secret = book_of(Path.join(folder, "with"), true)
    without = book_of(Path.join(folder, "without"), false)
    {:ok, with: with_secret, without: without}
  end

  # The open entries, and beside them the labelled ones, used by a profile that has the label.
  defp book_of(folder, secret?) do
    flow = "## Behavior\n\n```cmd\nmemory.search --query tea\n```\n"
    label = [visibility_labels: "[boss]"]

    write(folder, %{
      "open/run.md" => page("open.run", handler("ErrorText")),
      "open/flow.md" => page("open.flow", [schedule: "\"0 8 * * *\""], flow),
      "open/odd.md" => page("open.odd", handler: "Nowhere.Handler")
    })

    if secret? do
      write(folder, %{
        "#{@mark}/run.md" => page("#{@mark}.run", handler("Raise") ++ label),
        "#{@mark}/save.md" =>
          page(
            "#{@mark}.save",
            handler("Text") ++ [effects: "write", approval: "required"] ++ label
          ),
        "#{@mark}/flow.md" => page("#{@mark}.flow", [schedule: "\"0 9 * * *\""] ++ label, flow),
        "#{@mark}/odd.md" => page("#{@mark}.odd", [handler: "Nowhere.Handler"] ++ label),
        "plan/SKILL.md" => page("#{@mark}-plan", label, "The #{@mark} plan.\n")
      })
    end

    book = :"reports_#{System.unique_integer([:positive])}"

    {:ok, pid} =
      Skillbook.start_link(
        name: book,
        sources: [[path: folder, name: "files"]],
        write_to: folder,
        store: ":memory:",
        watch: false,
        builtins: ["memory"],
        schedules: [run_as: "ann"],
        profiles: [[id: "root", grants: :all], [id: "ann", grants: ["boss"]], [id: "bob"]]
      )

    Process.unlink(pid)
    on_exit(fn -> if Process.alive?(pid), do: Supervisor.stop(pid) end)

    for id <- ["bob", "ann"],
        do: Skillbook.run(Skillbook.view(book, id), "```cmd\nopen.run\nopen.flow\n```")

    lines = Enum.map_join(~w(run save flow), "\n", &"#{@mark}.#{&1}")
    if secret?, do: Skillbook.run(Skillbook.view(book, "ann"), "```cmd\n#{lines}\n```")
    %{book: book, web: Requests.web(book), folder: folder}
  end

  defp get(%{web: web}, target, as, format) do
    target = if format == :json, do: with_format(target), else: target
    Requests.call(web, "GET", target, as: as)
  end

  defp with_format(target),
    do: target <> if(target =~ "?", do: "&", else: "?") <> "format=json"

  # Times and numbers of runs differ between two books, and so does the order of the slowest.
  defp same(body, %{folder: folder}) do
    body
    |> String.replace(folder, "FOLDER")
    |> String.replace(~r/\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?( UTC|Z)?/, "TIME")
    |> String.replace(~r/(?<!\d)\d\d:\d\d(?!\d)|(Mon|Tue|Wed|Thu|Fri|Sat|Sun) TIME/, "TIME")
    |> String.replace(~r/\d\d-\d\d TIME/, "TIME")
    |> String.replace(~r/runs\/\d+|R-\d+|"id":\d+/, "RUN")
    |> String.replace(~r/\d+(\.\d+)? m?s\b/, "DURATION")
    |> String.replace(~r/("duration":)[\d.]+/, "\\1DURATION")
    |> String.replace(~r/( (c?x\d?|width)=")[\d.]+/, "\\1PLACE")
    |> String.split(["{", "}", "[", "]", ",", "<tr", "</tr>"])
    |> Enum.sort()
  end

  defp check(:html, body), do: assert(HtmlChecker.page(body) == [])
  defp check(:json, body), do: assert({:ok, _} = JSON.decode(body))

  for format <- [:html, :json], target <- @pages do
    test "#{target} as #{format} shows what a view shows", context do
      {target, format} = {unquote(target), unquote(format)}
      shown = fn as -> get(context.with, target, as, format) end

      # The empty form of /explain, and the pages of entries that left nothing.
      about_all? = target not in ["/explain", "/prompt?format_of=notes"]

      for as <- [@operator, "ann"] do
        assert %{status: 200, body: body} = shown.(as)
        # `ann` has made no request, and the prompt of the default format has no full texts.
        if about_all?, do: assert(body =~ @mark)
        check(format, body)
      end

      assert %{status: 200} = bob = shown.("bob")
      body = String.replace(bob.body, "work on #{@mark} reports", "")
      refute body =~ @mark
      refute body =~ context.with.folder

      assert same(bob.body, context.with) ==
               same(get(context.without, target, "bob", format).body, context.without)

      # An operator who sees the book as bob gets what bob gets.
      as = target <> if(target =~ "?", do: "&", else: "?") <> "as=bob"
      assert %{status: 200, body: body} = get(context.with, as, @operator, format)
      refute String.replace(body, ~r/work[ +]on[ +]#{@mark}[ +]reports/, "") =~ @mark
    end
  end

  test "the page of one hidden thing is that of a missing one", context do
    {:ok, runs} = Workflow.runs(View.all(context.with.book))
    [run | _] = for %{name: @mark <> _} = run <- runs, do: run
    {:ok, [%{ref: ref}]} = Skillbook.approvals(context.with.book)
    file = Path.join(context.with.folder, "#{@mark}/odd.md")

    # Each with one that is missing, and the status for the profile with the label.
    for {method, hidden, missing, form, boss} <- [
          {"GET", "/runs/#{run.id}", "/runs/1", nil, 200},
          {"GET", "/approvals/#{ref}", "/approvals/A-none", nil, 200},
          {"POST", "/approvals/#{ref}", "/approvals/A-none", %{"decision" => "yes"}, 404},
          {"GET", "/try/#{@mark}.run", "/try/missing.run", nil, 200},
          {"POST", "/try/#{@mark}.run", "/try/missing.run", %{"step" => "run"}, 200},
          {"GET", "/explain?name=#{@mark}.run", "/explain?name=horse.run", nil, 200},
          {"GET", "/diagnostics/fix?path=#{URI.encode_www_form(file)}", "/diagnostics/fix?path=x",
           nil, 404},
          {"POST", "/diagnostics/fix", "/diagnostics/fix", %{"path" => file, "digest" => ""},
           404},
          {"GET", "/status", "/nowhere", nil, 404}
        ],
        format <- [:html, :json] do
      ask = fn target, as ->
        target = if format == :json, do: with_format(target), else: target
        Requests.call(context.with.web, method, target, as: as, form: form)
      end

      {of_hidden, of_missing} = {ask.(hidden, "bob"), ask.(missing, "bob")}
      plain = &String.replace(&1, [@mark, "horse"], "NAME")
      assert {hidden, of_hidden.status} == {hidden, of_missing.status}
      assert plain.(of_hidden.body) == plain.(of_missing.body)
      assert {hidden, ask.(hidden, "ann").status} == {hidden, boss}
    end

    # Nothing was decided.
    assert {:ok, [%{ref: ^ref}]} = Skillbook.approvals(context.with.book)
  end

  test "only an operator sees the paths of files", context do
    for target <- ["/explain?name=open.odd", "/diagnostics", "/diagnostics?advice=1"],
        format <- [:html, :json] do
      assert get(context.with, target, @operator, format).body =~ context.with.folder
      refute get(context.with, target, "bob", format).body =~ context.with.folder
    end
  end
end
