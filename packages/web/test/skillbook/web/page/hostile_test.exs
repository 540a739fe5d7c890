defmodule Skillbook.Web.Page.HostileTest do
  # Every page stays whole with hostile documents, names, queries and forms: strict HTML, no
  # crash, no atom. `test/skillbook/web/browser_test.exs` looks at pages like these in Chromium.
  use Skillbook.SkillsCase, async: false

  alias Skillbook.Store
  alias Skillbook.Test.{HtmlChecker, Requests}
  alias Skillbook.Web.{Caller, Page}

  @moduletag :capture_log
  @moduletag :tmp_dir

  @texts [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onfocus='alert(1)' x='",
    "</title></textarea></pre></select><script>alert(1)</script>",
    "javascript:alert(1)",
    "a\u202Eb\u200Bc",
    "<!--",
    "]]>",
    "&lt;&amp;&#0;",
    "日本語 👩‍💻",
    "%2e%2e%2f",
    "x\ty"
  ]

  @body """
  # <b>Title</b>

  <style>*{display:none}</style> <svg onload=alert(1)> [a](javascript:alert(1))
  ![b](//evil.test/x)
  [c](/logout) [d](?as=boss) [e](../../new) <https://evil.test/"onclick="x> &#106;avascript:

  ```"><script>
  </code></pre><script>alert(1)</script>
  ```

  | <i>a</i> | b |
  |---|:-:|
  | \u202E | `</td>` |
  """

  setup %{tmp_dir: folder} do
    files =
      for {text, at} <- Enum.with_index(@texts), into: %{} do
        fields = [
          title: inspect("File " <> text),
          tags: "[#{inspect(text)}]",
          license: inspect(text),
          author: inspect(text),
          aliases: "[#{inspect(text)}]",
          trigger_keywords: "[#{inspect(text)}]",
          compatibility: inspect(text)
        ]

        fields = [name: "evil-#{at}", description: inspect(text)] ++ fields
        frontmatter = Enum.map_join(fields, "\n", fn {key, value} -> "#{key}: #{value}" end)

        {"evil-#{at}/SKILL.md", "---\n#{frontmatter}\n---\n#{@body}"}
      end

    write(folder, files)
    write(folder, %{"evil-0/<b>\" x.md" => "<script>\n", "bad.md" => "---\nname: [\n---\n"})
    book = :"hostile_#{System.unique_integer([:positive])}"

    start_supervised!(
      {Skillbook,
       name: book,
       sources: [[path: folder, name: "<i>evil</i>"]],
       store: ":memory:",
       watch: false,
       profiles: [[id: "<b>boss</b>", grants: :all], [id: "ann", grants: ["<u>"]]]}
    )

    view = Skillbook.view(book, "<b>boss</b>")

    for {text, at} <- Enum.with_index(@texts) do
      fields = %{
        name: "stored-#{at}",
        title: text |> String.replace(~r/[\x{202E}\t]/u, "") |> String.slice(0, 200),
        kind: :note,
        content: @body,
        tags: ["<b>#{at}"],
        labels: ["<u>"],
        attachments: ["<a>#{at}"]
      }

      {:ok, _} = Store.create(view, fields)
      {:ok, _} = Store.update(view, "stored-#{at}", %{edit: {:append, text}})
    end

    {:ok, _} = Store.disable(view, "stored-1")
    {:ok, book: book, web: Requests.web(book), boss: [profile: "<b>boss</b>", operator: true]}
  end

  defp checked(web, method, target, options) do
    response = Requests.call(web, method, target, options)
    type = Requests.header(response, "content-type") || ""

    if type =~ "text/html",
      do: assert({target, HtmlChecker.page(response.body)} == {target, []})

    response
  end

  defp pages(names) do
    for {"GET", pattern, module, _function} <- Page.routes(),
        module != Page.Events,
        name <- if(:name in pattern, do: names, else: [""]),
        do: path(pattern, name)
  end

  defp path(pattern, name) do
    parts =
      for part <- pattern do
        case part do
          :name -> name
          :number -> "1"
          {:rest, _} -> "<b>\" x.md"
          value when is_atom(value) -> "x"
          text -> text
        end
      end

    "/" <> Enum.map_join(parts, "/", &URI.encode(&1, fn c -> URI.char_unreserved?(c) end))
  end

  test "every page of hostile entries", %{web: web, boss: boss} do
    names = for at <- 0..(length(@texts) - 1), kind <- ["evil", "stored"], do: "#{kind}-#{at}"

    statuses =
      for target <- pages(names),
          {as, suffix} <- [{boss, ""}, {boss, "?as=ann"}, {"ann", ""}],
          into: %{} do
        {{target, as, suffix}, checked(web, "GET", target <> suffix, as: as).status}
      end

    assert for({key, status} <- statuses, status >= 500, do: key) == []
    # The pages were there.
    assert statuses[{"/skills/evil-0", boss, ""}] == 200
    assert statuses[{"/skills/stored-0/versions/1", boss, ""}] == 200
    assert statuses[{"/skills/stored-1", boss, ""}] == 200
  end

  test "hostile names and queries", %{web: web, boss: boss} do
    more = ["..", ".", "%", "a/b", "\\", "con", "skills.create", String.duplicate("a", 3_000)]
    texts = @texts ++ more
    # Modules bring their atoms.
    for {app, _description, _version} <- Application.loaded_applications(),
        String.starts_with?("#{app}", "skillbook"),
        module <- Application.spec(app, :modules),
        do: Code.ensure_loaded(module)

    for target <- pages(["evil-0"]), do: checked(web, "GET", target, as: boss)
    for text <- texts, do: hostile_query(web, "/skills", text, boss)
    atoms = :erlang.system_info(:atom_count)

    for text <- texts, target <- pages([text]) do
      assert checked(web, "GET", target, as: Enum.random([boss, "ann"])).status < 500
      hostile_query(web, target, text, Enum.random([boss, "ann"]))
    end

    assert :erlang.system_info(:atom_count) - atoms < length(texts)
  end

  # Every parameter of the pages has the text.
  defp hostile_query(web, target, text, as) do
    fields =
      for name <- ~w(q kind source domain tag label by author enabled page with done name),
          do: {name, text}

    query = URI.encode_query(fields ++ Enum.random([[], [{"as", text}]]))

    if byte_size(query) < 8_000,
      do: assert(checked(web, "GET", target <> "?" <> query, as: as).status < 500)
  end

  test "hostile forms", %{web: web, boss: boss} do
    names = ~w(kind name title description content tags labels include_in_prompt proactive_for
               excluded_for schedule timezone attachments version step previewed operation find
               text all number data type file accept[])

    for {"POST", pattern, _module, _function} <- Page.routes(), text <- @texts ++ ["", "1"] do
      form = for name <- names, do: {name, text}
      target = path(pattern, "stored-0")

      assert {target, text, checked(web, "POST", target, as: boss, form: form).status < 500} ==
               {target, text, true}
    end

    for body <- ["", "{", "a=%", "a[]=1&a=2", "\xFF=\xFF"],
        type <- ["application/x-www-form-urlencoded", "text/plain"] do
      for {"POST", pattern, _module, _function} <- Page.routes() do
        target = path(pattern, "stored-0")
        headers = [{"content-type", type}]
        assert checked(web, "POST", target, as: boss, headers: headers, body: body).status < 500
      end
    end
  end

  test "every form that changes something has the token against forgery", context do
    %{book: book, web: web} = context
    fields = [via: :session, csrf: "the-token", operator?: true]
    {:ok, caller} = Caller.new(book, "<b>boss</b>", fields)

    forms =
      for target <- pages(["stored-0", "evil-0"]) do
        request = %{Requests.request("GET", target) | caller: caller}
        %{body: body} = Page.handle(request, web)
        html = IO.iodata_to_binary(body)

        if String.starts_with?(html, "<!doctype") do
          for {"form", %{"method" => "post"}, _} = form <- HtmlChecker.elements(html) do
            tokens =
              for {"input", %{"name" => "_csrf", "value" => value}, _} <-
                    HtmlChecker.elements(html(form)),
                  do: value

            assert {target, tokens} == {target, ["the-token"]}
          end
        else
          []
        end
      end

    assert length(List.flatten(forms)) > 10
  end

  # An element as it was written.
  defp html({name, attributes, children}) do
    attributes = for {key, value} <- attributes, do: ~s( #{key}="#{escape(value)}")

    "<#{name}#{attributes}>#{Enum.map(children, &html/1)}" <>
      if(name == "input", do: "", else: "</#{name}>")
  end

  defp html(text), do: text

  defp escape(text) do
    for {char, entity} <- [
          {"&", "&amp;"},
          {"<", "&lt;"},
          {">", "&gt;"},
          {"\"", "&quot;"},
          {"'", "&#39;"}
        ],
        reduce: text,
        do: (text -> String.replace(text, char, entity))
  end
end
