defmodule Skillbook.Package.Inspection.Text do
  @moduledoc false
  # Finds hidden characters, comments, blobs, hosts, programs in code blocks, and sentences that
  # try to override a model's rules, in the text of one file.

  alias Skillbook.Support.Hidden

  import Skillbook.Package.Inspection.Finding, only: [digest: 1, finding: 6, finding: 7]

  @doc "The findings of one file's text."
  def findings(path, text) do
    lines = lines(text)

    markdown? =
      path |> Path.extname() |> String.downcase() |> Kernel.in([".md", ".markdown", ".mdx"])

    List.flatten([
      hidden(path, text, lines),
      mixed(path, text, lines),
      blobs(path, text, lines),
      hosts(path, text, lines),
      sentences(path, text, lines),
      tools(path, text, lines),
      if(markdown?, do: [comments(path, text, lines), commands(path, text)], else: [])
    ])
  end

  # The offset of each line.
  defp lines(text),
    do: [0 | for({at, 1} <- :binary.matches(text, "\n"), do: at + 1)] |> List.to_tuple()

  defp line(lines, offset), do: line(lines, offset, 0, tuple_size(lines))

  defp line(_lines, _offset, low, high) when high - low <= 1, do: low + 1

  defp line(lines, offset, low, high) do
    middle = div(low + high, 2)

    if elem(lines, middle) <= offset,
      do: line(lines, offset, middle, high),
      else: line(lines, offset, low, middle)
  end

  # The first group of each match, or the whole match, with its line.
  defp scan(regex, text, lines) do
    for [whole | groups] <- Regex.scan(regex, text, return: :index) do
      {at, length} =
        case groups do
          [{at, length} | _] when length > 0 -> {at, length}
          _ -> whole
        end

      {binary_part(text, at, length), line(lines, at)}
    end
  end

  # Characters

  # A byte order mark at the start belongs to the file.
  defp hidden(path, text, lines) do
    for %{at: at, code: code} = hidden <- Hidden.find(text), {at, code} != {0, 0xFEFF} do
      number = code |> Integer.to_string(16) |> String.pad_leading(4, "0")
      level = if hidden.suspect?, do: :warning, else: :notice
      what = "U+#{number} #{hidden.description}"
      key = "#{path} #{hidden.description}"
      finding(:hidden, level, what, path, line(lines, at), "an invisible character", key)
    end
  end

  @mixed ~r/
    (?<![\p{L}\p{N}])(?=\p{L}*[A-Za-z])(?=\p{L}*
    (?:[\x{0400}-\x{04FF}\x{0391}\x{0392}\x{0395}-\x{0397}\x{0399}\x{039A}\x{039C}\x{039D}]
    |[\x{039F}\x{03A1}\x{03A4}\x{03A5}\x{03A7}\x{03BF}\x{03C1}]))
    [\p{L}]{3,}
  /ux

  defp mixed(path, text, lines) do
    for true <- [text =~ ~r/[\x{0391}-\x{03C1}\x{0400}-\x{04FF}]/u],
        {word, line} <- scan(@mixed, text, lines) do
      finding(
        :hidden,
        :warning,
        word,
        path,
        line,
        "a word that mixes letters of two alphabets"
      )
    end
  end

  @blob ~r/(?<![A-Za-z0-9+\/_-])[A-Za-z0-9+\/_-]{160,}+={0,2}/

  defp blobs(path, text, lines) do
    for {blob, line} <- scan(@blob, text, lines), dense?(blob) do
      what = "#{String.slice(blob, 0, 24)}… (#{byte_size(blob)} characters)"

      finding(
        :blob,
        :warning,
        what,
        path,
        line,
        "may hide its content",
        digest(blob)
      )
    end
  end

  # A part of the blob is enough to tell.
  @compared 4_096

  defp dense?(<<blob::binary-size(@compared), _, _::binary>>), do: dense?(blob)

  defp dense?(blob) do
    blob =~ ~r/[a-z]/ and blob =~ ~r/[A-Z]/ and blob =~ ~r/[0-9]/ and
      blob |> String.graphemes() |> Enum.uniq() |> length() >= 24
  end

  # Addresses

  @url ~r/
    \bhttps?:\/\/(?:[^\s\/@"'<>]*@)?(\[[0-9a-fA-F:.]+\]|[^\s\/:?#"'<>()\[\]{}|\\^`,;*$%&@!]+)
  /iux
  @examples ~r/
    (?:\A|\.)(?:example\.(?:com|org|net|edu)|example|test|invalid|localhost)\z|\A127\.
    |\A0\.0\.0\.0\z
  /x
  @drops ~r/
    (?:\A|\.)(?:webhook\.site|requestbin\.(?:com|net)|pipedream\.net|ngrok(?:-free)?\.(?:io|app
    |dev)|pastebin\.com|transfer\.sh|file\.io|0x0\.st|interact\.sh|oast\.\w+
    |burpcollaborator\.net|requestcatcher\.com|beeceptor\.com)\z
  /x

  defp hosts(path, text, lines) do
    for {host, line} <- scan(@url, text, lines),
        host = host |> String.downcase() |> String.trim("."),
        String.contains?(host, [".", ":"]) and not (host =~ @examples) do
      {level, reason} = host(host)
      finding(:host, level, host, path, line, reason)
    end
  end

  defp host(host) do
    cond do
      host =~ @drops ->
        {:warning, "a service that collects data sent to it"}

      host =~ ~r/\A\[|\A\d+(\.\d+){3}\z/ ->
        {if(private?(host), do: :notice, else: :warning), "an IP address instead of a name"}

      host =~ ~r/(?:\A|\.)xn--|[^\x00-\x7F]/ ->
        {:warning, "a name with letters that may look like others"}

      true ->
        {:notice, "a URL names it"}
    end
  end

  defp private?(host),
    do: host =~ ~r/\A(10\.|192\.168\.|169\.254\.|172\.(1[6-9]|2\d|3[01])\.|\[::1\])/

  # Sentences: a reason, the texts that a match may begin with in lower case, and a pattern, whose
  # first group is the finding if it has one. The pattern is tried only at these texts, or at the
  # beginning of each line: a search of the whole text would occupy a scheduler for milliseconds.

  # The reductions that a try at one place counts for, besides those of the pattern.
  @place 20

  # Repetitions are possessive (`++`) or limited: a text of blanks must not take quadratic time.
  @sentences [
    {"asks to ignore earlier instructions", ~w(ignore disregard forget override bypass), ~r/
       \b(?:ignore|disregard|forget|override|bypass)\s++(?:(?:all|any|every|each|the|your|my
       |these|those|of|and|or|other)\s++){0,4}(?:previous|prior|above|preceding|earlier|system
       |existing|original|safety)\s++(?:(?:system|safety|and|or)\s++){0,2}(?:instructions?
       |prompts?|rules?|guidelines?|directives?|constraints?|messages?|polic(?:y|ies))\b
     /ix},
    {"claims to be the system", ~w(<| </ <i <s <e <<sys <</sys [inst] [/inst]), ~r/
       (?:<\|?\/?(?:im_start|im_end|system|endoftext)\|?>|<\/?system[-_]?(?:prompt|reminder
       |message|instructions?)>|\[\/?INST\]|<<\/?SYS>>)
     /ix},
    {"claims to be the system", :lines, ~r/
       ^[ \t]*+(?:[#]++\s*+)?(?:\[system\]|system\s*+(?:message|override|instruction|prompt)?
       \s*+:)\s*+
       (?:you\b|ignore\b|from[ ]now\b|new\b|override\b|important\b)
     /imx},
    {"claims that other rules apply now", ~w(your new you enter enable activate), ~r/
       \b(?:your\s++(?:new|real|true|actual)\s++(?:instructions?|rules?|purpose|task|system
       [ ]prompt)\s++(?:is|are)\b|new\s++system\s++prompt\s*+:|you\s++are\s++(?:no\s++longer
       |not)\s++bound\s++by|you\s++are\s++now\s++(?:in\s++)?(?:an?\s++)?(?:DAN\b|unrestricted
       |jailbroken|developer\s++mode|god\s++mode)|(?:enter|enable|activate)\s++(?:developer|god
       |DAN
       |jailbreak)\s++mode)
     /ix},
    {"asks to hide something from the user", ~w(do don never must should without), ~r/
       \b(?:do\s++not|don['’]t|never|must\s++not|should\s++not|without)\s++(?:ever\s++)?(?:tell
       (?:ing)?|inform(?:ing)?|notify(?:ing)?|mention(?:ing)?\s++(?:this|it|that|these
       |any\s++of\s++this)?\s*+to|reveal(?:ing)?\s++(?:this|it|that|these)?\s*+to
       |disclos(?:e|ing)\s++
       (?:this|it|that|these)?\s*+to|alert(?:ing)?|let(?:ting)?)\s++(?:the\s++|your\s++)?(?:users?
       |humans?|operator|owner|anyone|anybody)\b
     /ix},
    {"asks to hide something from the user", ~w(hide conceal keep), ~r/
       \b(?:hide|conceal|keep)\s++(?:this|it|that|these\s++\w+|the\s++(?:fact|action|command
       |output
       |request|existence)\w*)\s++(?:\w+\s++){0,3}?(?:hidden\s++|secret\s++)?from\s++(?:the\s++
       |your\s++)?(?:user|human|operator|owner)\b
     /ix},
    {"asks to skip approval", ~w(without auto always bypass circumvent disable turn), ~r/
       \b(?:without\s++(?:asking|requesting|waiting\s++for|seeking)\s++(?:(?:the\s++)?user(?:
       ['’]s)?\s++)?(?:for\s++)?(?:any\s++)?(?:permission|confirmation|approval|consent)|(?:auto
       [- ]?approve|always\s++approve)\s++(?:all|every|any)\b|(?:bypass|circumvent|disable
       |turn\s++off)\s++(?:the\s++|all\s++|any\s++)?(?:safety|security|permission|approval|sandbox
       |guardrails?)\s*+(?:checks?|prompts?|restrictions?|filters?|measures?|controls?|mode)?)\b
     /ix},
    {"asks to skip approval", ~w(--dangerously- --yolo --trust-all-tools bypasspermissions), ~r/
       (?<![\w-])(?:--dangerously-skip-permissions|--dangerously-bypass-approvals-and-sandbox
       |--yolo|--trust-all-tools|bypassPermissions)\b
     /x},
    {"asks to send secrets away",
     ~w(send post upload exfiltrate forward transmit leak email submit), ~r/
       \b(?:send|post|upload|exfiltrate|forward|transmit|leak|email|submit)\s++(?:(?:me|us|all
       |any|the|your|their|user['’]?s?|its|every|of|contents?|current|full|entire|these|those
       |these|found)\s++){0,6}(?:api[\s_-]?keys?|secrets?|(?:access|auth|session)\s++tokens?
       |passwords?|credentials?|private\s++keys?|ssh\s++keys?|environment\s++variables?|\.env\b
       |env\s++vars?|conversation(?:\s++history)?|chat\s++history|system\s++prompt)\b
       [^.\n]{0,40}?\b
       (?:to|via|at|on)\s++(?:https?:|the\s++(?:server|endpoint|webhook|url|following)|an?\s++
       (?:external|remote|server|webhook|endpoint)|this\s++(?:url|address|endpoint|webhook)|
       [\w.+-]+@)
     /ix},
    {"sends secrets away", ~w(curl wget nc invoke-webrequest invoke-restmethod), ~r/
       \b(?:curl|wget|nc|Invoke-WebRequest|Invoke-RestMethod)\b[^\n]{0,200}(?:\$\(\s*+(?:cat|env
       |printenv|base64)\b[^\n]{0,80}|`\s*+(?:cat|env|printenv)\b[^\n]{0,80}|@~?\/?[\w.\/-]*
       (?:\.env|id_rsa|id_ed25519|credentials|\.netrc|\.npmrc)\b)
     /ix},
    {"reads secrets", ~w(~/. $home/. /root /home /etc/shadow), ~r/
       (?:~|\$HOME|\/root|\/home\/\w+)\/\.(?:ssh\/(?:id_\w+|authorized_keys)|aws\/credentials
       |netrc|gnupg\/|kube\/config|docker\/config\.json|config\/gcloud\/\w+)|\/etc\/shadow\b
     /x},
    {"sends data in the address of an image", ~w(![), ~r/
       !\[[^\]\n]{0,500}\]\(https?:\/\/[^)\s?&]{0,500}+[?&][^)\s]{0,500}=
       (?:\{\{?|\$\{|<)[^)\n]{0,500}+\)
     /ix},
    {"runs a download", ~w(curl wget iwr invoke-webrequest bash sh zsh iex invoke-expression), ~r/
       \b(?:curl|wget|iwr|Invoke-WebRequest)\b[^\n|;]{0,300}\|\s*+(?:sudo\s++)?(?:ba|z|k|da)?sh\b
       |\b(?:bash|sh|zsh)\s++(?:-c\s++)?["']?(?:<\(|\$\()\s*+(?:curl|wget)\b|\b(?:iex
       |Invoke-Expression)\b[^\n]{0,80}\b(?:iwr|irm|DownloadString|Invoke-WebRequest)\b
     /ix},
    {"runs a hidden blob", ~w(base64 eval exec), ~r/
       \bbase64\s++(?:-d|-D|--decode)\b[^\n|]{0,100}\|\s*+(?:sudo\s++)?(?:bash|sh|zsh|python3?
       |node
       |perl)\b|\b(?:eval|exec)\s*+\(\s*+(?:atob|base64\.b64decode|Buffer\.from
       |compile\s*+\(\s*+base64)\b
     /ix},
    {"changes the settings of another program", ~w(append add write insert copy), ~r/
       \b(?:append|add|write|insert|copy)\b[^.\n]{0,80}\b(?:to|into)\s++(?:your\s++|the\s++)?
       (?:~\/\S*)?(?:\.bashrc|\.zshrc|\.profile|crontab|authorized_keys|~\/\.claude\/
       (?:CLAUDE\.md|settings\.json))
     /ix}
  ]

  defp sentences(path, text, lines) do
    lower = String.downcase(text, :ascii)

    for {reason, starts, regex} <- @sentences,
        {at, length} <- matches(Regex.recompile!(regex), text, places(starts, lower, lines)) do
      sentence = binary_part(text, at, length)
      finding(:instruction, :warning, sentence, path, line(lines, at), reason)
    end
  end

  defp places(:lines, lower, lines) do
    case :binary.match(lower, "system") do
      :nomatch -> []
      _ -> Tuple.to_list(lines)
    end
  end

  defp places(starts, lower, _lines), do: for({at, _} <- :binary.matches(lower, starts), do: at)

  # The matches that begin at one of these places and not within the one before.
  defp matches(%Regex{re_pattern: pattern}, text, places) do
    {found, _} =
      Enum.reduce(places, {[], 0}, fn at, {found, from} ->
        :erlang.bump_reductions(@place)

        with true <- at >= from,
             {:match, [{at, length} = whole | groups]} <-
               :re.run(text, pattern, [:anchored, offset: at, capture: :all]) do
          {[List.first(groups, whole) | found], at + max(length, 1)}
        else
          _ -> {found, from}
        end
      end)

    Enum.reverse(found)
  end

  defp tools(path, text, lines) do
    for {tool, line} <- scan(~r/\bmcp__[\w-]+/, text, lines) do
      finding(:tool, :notice, tool, path, line, "a text names this tool of an MCP server")
    end
  end

  # Markdown

  defp comments(path, text, lines) do
    for {at, length} <- comment_places(text, 0, []),
        comment = binary_part(text, at, length),
        String.trim(comment) != "" do
      reason = "is invisible in rendered Markdown"
      finding(:comment, :notice, comment, path, line(lines, at), reason)
    end
  end

  # The text in each comment; an empty comment as a whole. One that begins with `[if` is a
  # condition.
  defp comment_places(text, from, found) do
    with {at, 4} <- match(text, "<!--", from),
         inner = at + 4,
         {:if, false, _} <- {:if, condition?(text, inner), inner},
         {close, 3} <- match(text, "-->", inner) do
      place = if close == inner, do: {at, 7}, else: {inner, close - inner}
      comment_places(text, close + 3, [place | found])
    else
      {:if, true, inner} -> comment_places(text, inner, found)
      :nomatch -> Enum.reverse(open_comment(text, from) ++ found)
    end
  end

  defp condition?(text, at), do: byte_size(text) >= at + 3 and binary_part(text, at, 3) == "[if"

  # A comment that is never closed reaches to the end.
  defp open_comment(text, from) do
    case match(text, "<!--", from) do
      {at, 4} when at + 4 == byte_size(text) -> [{at, 4}]
      {at, 4} -> [{at + 4, byte_size(text) - at - 4}]
      :nomatch -> []
    end
  end

  defp match(text, pattern, from),
    do: :binary.match(text, pattern, scope: {from, byte_size(text) - from})

  @shells [
    "sh",
    "bash",
    "shell",
    "zsh",
    "fish",
    "console",
    "shell-session",
    "terminal",
    "powershell",
    "ps1",
    "pwsh",
    "bat",
    "cmd",
    "batch"
  ]
  @shell_words ~w(if then else elif fi for do done while until case esac in function select time
                  return exit break continue local export declare typeset readonly unset set shift
                  source alias true false cd pwd echo printf read test let eval exec trap wait)

  # Programs in shell code blocks, and `hooks/3` in the text around them.
  defp commands(path, text) do
    text
    |> String.splitter(["\r\n", "\n"])
    |> Stream.with_index(1)
    |> Enum.reduce({nil, []}, &block(&1, &2, path))
    |> elem(1)
  end

  # The state is the open fence with its kind. Inside a shell block, the kind also says whether
  # the line continues the previous one.
  defp block({line, number}, {nil, done}, path) do
    case Regex.run(~r/^\s*+(?:[>*+-]\s++|\d++\.\s++)*+(`{3,}|~{3,})\s*+([\w.+-]*)/, line) do
      [_, mark, language] ->
        {{mark, if(String.downcase(language) in @shells, do: :shell, else: :other)}, done}

      nil ->
        {nil, hooks(line, number, path) ++ done}
    end
  end

  defp block({line, number}, {{mark, state} = fence, done}, path) do
    cond do
      closes?(line, mark) -> {nil, done}
      state == :other -> {fence, done}
      match?({:heredoc, _}, state) -> {{mark, heredoc(state, line)}, done}
      state == :continued -> {{mark, next(line)}, done}
      true -> {{mark, next(line)}, Enum.map(programs(line), &command(&1, number, path)) ++ done}
    end
  end

  defp closes?(line, mark) do
    trimmed = String.trim(line)
    String.starts_with?(trimmed, mark) and String.trim(trimmed, String.first(mark)) == ""
  end

  defp next(line) do
    case Regex.run(~r/<<-?\s*+["']?(\w+)["']?/, line) do
      [_, word] -> {:heredoc, word}
      nil -> if(String.ends_with?(line, ["\\", "`"]), do: :continued, else: :shell)
    end
  end

  defp heredoc({:heredoc, word} = state, line),
    do: if(String.trim(line) == word, do: :shell, else: state)

  # Quotes are looked for only in lines that a person may have written: many escaped ones take
  # quadratic time.
  @longest_line 4_096

  defp programs(line) do
    line = line |> String.trim() |> String.replace(~r/\A(?:\$|PS[^>]*>)\s+/, "")

    if line == "" or String.starts_with?(line, ["#", "//", "::", "-", "REM "]) do
      []
    else
      line
      # Quoted texts and comments are not commands.
      |> without_quotes()
      |> String.replace(~r/\s#.*\z/, "")
      |> String.split(["||", "|", "&&", ";", "$(", "("])
      |> Enum.map(&program/1)
      |> Enum.reject(&is_nil/1)
    end
  end

  defp without_quotes(line) when byte_size(line) > @longest_line, do: line

  defp without_quotes(line),
    do: String.replace(line, ~r/'[^']*'|"(?:[^"\\]|\\.)*"/, "Q")

  defp program(text) do
    words =
      text
      |> String.split()
      |> Enum.drop_while(&(&1 =~ ~r/\A\w+=/ or &1 in ~w(sudo env nohup exec time then do else !)))

    with [word | _] <- words,
         true <- word =~ ~r/\A(?:\.{0,2}\/)?[A-Za-z][\w.\/+-]*\z/ and not (word =~ ~r/[.:,]\z/),
         false <- word in @shell_words do
      word
    else
      _ -> nil
    end
  end

  defp command(word, number, path),
    do: finding(:command, :notice, word, path, number, "a code block calls it")

  # Some programs run a command in backticks after an exclamation mark when they read the page.
  defp hooks(line, number, path) do
    for true <- [String.contains?(line, "!`")],
        [_, command] <- Regex.scan(~r/(?:^|\s)!`([^`]+)`/, line) do
      finding(
        :hook,
        :warning,
        command,
        path,
        number,
        "some programs run this when they read the skill"
      )
    end
  end
end
