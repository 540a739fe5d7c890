defmodule Skillbook.Connections.Library do
  @moduledoc false
  # The functions of the native library of connections (native/skillbook_connect), which replaces
  # these stubs when it is loaded. Most applications do not build it, so it is loaded when it is
  # first needed. The module of each topic is the only caller of the topic's functions, and calls
  # load/0 before.

  alias Skillbook.Support.NativeLibrary

  @library %NativeLibrary{
    name: "skillbook_connect",
    setting: "connections: true",
    variable: "SKILLBOOK_CONNECT"
  }

  @doc """
  Loads the library, unless it is loaded, which takes well below a microsecond to find out. The
  error says how to build it.
  """
  @spec load() :: :ok | {:error, String.t()}
  def load do
    if loaded?() do
      :ok
    else
      result = :erlang.load_nif(NativeLibrary.path(@library), 0)

      with {:error, reason} <- NativeLibrary.loaded(@library, result),
           do: {:error, "the library of connections is not built: #{reason}"}
    end
  end

  # Never set. For a literal, the compiler would drop the branch of a loaded library.
  @doc false
  def loaded?, do: :persistent_term.get({__MODULE__, :loaded?}, false)

  @doc "Text of bytes in a character set. Always text, with U+FFFD for wrong bytes."
  @spec decode(binary(), String.t()) :: String.t()
  def decode(_bytes, _charset), do: missing()

  @doc "Reads a mail. The error is text."
  @spec mime_parse(binary()) :: {:ok, map()} | {:error, String.t()}
  def mime_parse(_raw), do: missing()

  @doc "The content of a part of a mail. The error is text."
  @spec mime_part(binary(), non_neg_integer()) :: {:ok, binary()} | {:error, String.t()}
  def mime_part(_raw, _number), do: missing()

  @doc "The bytes of a mail. The error is text."
  @spec mime_build(map()) :: {:ok, binary()} | {:error, String.t()}
  def mime_build(_mail), do: missing()

  @doc "Text of HTML as a reader sees it."
  @spec html_text(String.t()) :: %{text: String.t(), hidden: non_neg_integer(), cut: boolean()}
  def html_text(_html), do: missing()

  @doc "HTML of a text in Markdown."
  @spec markdown_html(String.t()) :: String.t()
  def markdown_html(_text), do: missing()

  @typedoc "A failure of a mail server: its kind, a text of ours, and the server's text."
  @type mail_failure :: {:error, atom(), String.t(), String.t() | nil}

  @doc """
  Opens a session with an IMAP server. The message is `{reference, :ok}` or `{reference, failure}`
  (`t:mail_failure/0`).
  """
  @spec imap_open(reference(), map(), non_neg_integer()) :: reference()
  def imap_open(_reference, _account, _milliseconds), do: missing()

  @doc "Runs a command in a session. The message is `{reference, {:ok, answer}}` or a failure."
  @spec imap_call(reference(), reference(), atom() | tuple(), non_neg_integer()) :: :ok
  def imap_call(_session, _reference, _command, _milliseconds), do: missing()

  @doc "Ends a session. Its connection is kept for a while."
  @spec imap_leave(reference()) :: :ok
  def imap_leave(_session), do: missing()

  @doc "Sends a mail. The message is `{reference, :ok}` or a failure."
  @spec smtp_send(reference(), map(), String.t(), [String.t()], binary(), non_neg_integer()) ::
          :ok
  def smtp_send(_reference, _account, _from, _recipients, _raw, _milliseconds), do: missing()

  @doc """
  The dates of a rule of iCalendar from `from` on and before `to`, at most `limit`, found within
  some milliseconds, and whether there may be more. All are seconds since 1970 of local time.
  """
  @spec ical_dates(
          String.t(),
          integer(),
          integer(),
          integer(),
          non_neg_integer(),
          non_neg_integer()
        ) :: {:ok, [integer()], boolean()} | :error
  def ical_dates(_rule, _start, _from, _to, _limit, _milliseconds), do: missing()

  @doc """
  The elements of an XML document with their depths, names (`"DAV: href"`), texts and attributes.
  """
  @spec xml_elements(binary()) ::
          {:ok, [{non_neg_integer(), String.t(), String.t(), [{String.t(), String.t()}]}]}
          | :error
  def xml_elements(_xml), do: missing()

  defp missing, do: :erlang.nif_error(:not_loaded)
end
