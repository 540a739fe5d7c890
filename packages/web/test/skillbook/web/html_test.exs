defmodule Skillbook.Web.HtmlTest do
  use ExUnit.Case, async: true

  import Skillbook.Web.Html, only: [tag: 2, tag: 3, text: 1]

  alias Skillbook.Test.HtmlChecker
  alias Skillbook.Web.{Html, Page}

  doctest Skillbook.Web.Html
  doctest Page.Parts
  doctest Page.Excerpt

  # One of each rule of HTML, of URLs and of Unicode.
  @hostile [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "</textarea><script>alert(1)</script>",
    "</title></style><b>",
    "&lt;b&gt; &amp;amp; &#x3C;",
    "javascript:alert(1)",
    "<!-- --!> -->",
    "<![CDATA[ ]]>",
    "a\u202Eb\u200Bc\uFEFF",
    "a\0b\e[2Jc",
    "\xFF\xFEbad",
    "\r\n\r\nset-cookie: a=b",
    "{{7*7}} ${x} <%= 1 %>",
    "日本語 👩‍💻 é"
  ]

  test "texts, labels and values cannot leave their places" do
    for text <- @hostile do
      html =
        text(
          tag(:div, [], [
            tag(:p, [title: text, class: ["a", text]], text),
            tag(:textarea, [aria_label: text, name: text], text),
            tag(:input, type: "text", aria_label: "x", value: text, placeholder: text)
          ])
        )

      assert {text, HtmlChecker.part(html)} == {text, []}

      assert [{"div", _, _}, {"p", _, _}, {"textarea", _, _}, {"input", _, _}] =
               HtmlChecker.elements(html)
    end
  end

  test "values of fields come back as they were" do
    for text <- @hostile, String.valid?(text), not (text =~ "\0") do
      html = text([tag(:textarea, [], text), tag(:input, value: text)])
      [{"textarea", _, _} = area, {"input", %{"value" => value}, _}] = HtmlChecker.elements(html)
      # Browsers drop the first line break.
      assert {"\n" <> text, text} == {HtmlChecker.text(area), value}
    end
  end

  test "scripts, styles and other addresses raise" do
    for {attributes, message} <- [
          {[onclick: "a"], "expected a listener in app.js, got the attribute onclick"},
          {[style: "a"], "expected a class, got the attribute style"},
          {[srcdoc: "a"], "expected a page of its own, got the attribute srcdoc"},
          {[href: "javascript:alert(1)"],
           "expected a path or an http(s) address, got: javascript:alert(1)"},
          {[href: " javascript:alert(1)"],
           "expected a path or an http(s) address, got:  javascript:alert(1)"},
          {[href: "//a.test"], "expected a path or an http(s) address, got: //a.test"},
          {[src: "data:text/html,a"],
           "expected a path or an http(s) address, got: data:text/html,a"},
          {[action: "/\\a.test"], "expected a path or an http(s) address, got: /\\a.test"},
          {[formaction: "vbscript:a"], "expected a path or an http(s) address, got: vbscript:a"}
        ] do
      assert_raise ArgumentError, message, fn -> tag(:a, attributes) end
    end

    assert_raise ArgumentError,
                 "expected a class, got an element <style>: styles are in app.css",
                 fn ->
                   tag(:style, [], "a")
                 end

    assert_raise ArgumentError, "expected a <script> without text: scripts are in app.js", fn ->
      tag(:script, [], "a")
    end
  end

  test "addresses" do
    for {address, allowed?} <- [
          {"/", true},
          {"/a?b#c", true},
          {"#a", true},
          {"?a", true},
          {"", true},
          {"https://a.test/", true},
          {"HTTP://a.test", true},
          {"mailto:a@b.test", true},
          {"data:,", true},
          {"data:image/svg+xml,<svg>", false},
          {"a", false},
          {"//a.test", false},
          {"/\\a.test", false},
          {"\\\\a.test", false},
          {"javascript:a", false},
          {"java\nscript:a", false},
          {"\u0001javascript:a", false},
          {"https://a.test/ b", false},
          {"\xFF", false}
        ] do
      assert {address, Html.address?(address)} == {address, allowed?}
    end
  end

  test "the checker finds each kind of mistake" do
    page = fn body ->
      "<!doctype html>\n<html lang=\"en\"><head><title>a</title></head><body>" <>
        "<a class=\"skip\" href=\"#main\">a</a><nav></nav>" <>
        "<main id=\"main\"><h1>a</h1>#{body}</main></body></html>\n"
    end

    # A page has a skip link if it has a navigation.
    for {parts, problems} <- [
          {[], []},
          {["<a class=\"skip\" href=\"#main\">a</a>"], ["no skip link"]},
          {["<nav></nav>"], ["no skip link"]},
          {["<a class=\"skip\" href=\"#main\">a</a>", "<nav></nav>"], []}
        ] do
      html = String.replace(page.("<p>a</p>"), parts, "")
      assert {parts, HtmlChecker.page(html)} == {parts, problems}
    end

    for {body, problem} <- [
          {"<p>a", "</main> closes <p>"},
          {"<p>a & b</p>", ~s(a bare & or > in "a & b")},
          {"<p onclick=\"a\">a</p>", "<p onclick>"},
          {"<p style=\"a\">a</p>", "<p style>"},
          {"<p id=\"main\">a</p>", "the id main is there twice"},
          {"<script>a</script>", "<script> with text or without src"},
          {"<script src=\"https://a.test\"></script>",
           "<script src> leads to \"https://a.test\""},
          {"<style>a</style>", "<style>"},
          {"<a href=\"javascript:a\">a</a>", "<a href> leads to \"javascript:a\""},
          {"<a href=\"/\"></a>", "<a> without a text"},
          {"<input type=\"text\">", "<input> without a label"},
          {"<label for=\"x\">a</label>", "<label for> leads to no id x"},
          {"<h3>a</h3>", "h3 after h1"},
          {"<h1>a</h1>", "2 h1"},
          {"<p><div>a</div></p>", "<div> in <p>"},
          {"<ul>a</ul>", "text in <ul>"},
          {"<iframe></iframe>", "<iframe> is unknown"},
          {"<p>a\u202E</p>", "a hidden character in <p>"},
          {"<a href=\"/\"><a href=\"/\">a</a></a>", "<a> in another link or button"},
          {"<p a=\"1\" a=\"2\">a</p>", "<p> has an attribute that is twice there or unreadable"},
          {"<p a=1>a</p>", "<p> is not ended"},
          {"<table><tr><td>a</td></tr><tr></tr></table>", "rows of different lengths in a table"}
        ] do
      assert {body, problem in HtmlChecker.page(page.(body))} == {body, true}
    end
  end
end
