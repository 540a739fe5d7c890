defmodule Skillbook.Drive.Types do
  @moduledoc false
  # Media types in drives: the sort of file that each is, and the formats that Google's own
  # documents are exported in.

  alias Skillbook.Support.Number

  @google "application/vnd.google-apps."
  @office "application/vnd.openxmlformats-officedocument."
  @open "application/vnd.oasis.opendocument."

  @workbook @office <> "spreadsheetml.sheet"

  # A type that ends with "/" stands for all that begin with it. The first of a kind is Google's.
  @kinds [
    folder: [@google <> "folder"],
    document: [
      @google <> "document",
      @office <> "wordprocessingml.document",
      @open <> "text",
      "application/msword"
    ],
    spreadsheet: [
      @google <> "spreadsheet",
      @workbook,
      @open <> "spreadsheet",
      "application/vnd.ms-excel",
      "text/csv"
    ],
    presentation: [
      @google <> "presentation",
      @office <> "presentationml.presentation",
      @open <> "presentation",
      "application/vnd.ms-powerpoint"
    ],
    markdown: ["text/markdown", "text/x-markdown"],
    pdf: ["application/pdf"],
    text: ["text/"],
    image: ["image/", @google <> "drawing"],
    audio: ["audio/"],
    video: ["video/", @google <> "video"]
  ]

  # {for people, extension, for reading}
  @exports %{
    (@google <> "document") => {"application/pdf", ".pdf", "text/markdown"},
    (@google <> "spreadsheet") => {@workbook, ".xlsx", @workbook},
    (@google <> "presentation") => {"application/pdf", ".pdf", "text/plain"},
    (@google <> "drawing") => {"application/pdf", ".pdf", "application/pdf"},
    (@google <> "script") => {@google <> "script+json", ".json", @google <> "script+json"}
  }

  # The extensions of the formats that Google exports its documents in, the default first.
  # Markdown is left out: vaults take no notes of others.
  @formats %{
    (@google <> "document") => ~w(pdf docx odt rtf txt epub),
    (@google <> "spreadsheet") => ~w(xlsx ods csv tsv pdf),
    (@google <> "presentation") => ~w(pdf pptx odp txt jpg png svg),
    (@google <> "drawing") => ~w(pdf png jpg svg),
    (@google <> "script") => ~w(json)
  }

  @format_types %{
    "csv" => "text/csv",
    "docx" => @office <> "wordprocessingml.document",
    "epub" => "application/epub+zip",
    "jpg" => "image/jpeg",
    "json" => @google <> "script+json",
    "odp" => @open <> "presentation",
    "ods" => @open <> "spreadsheet",
    "odt" => @open <> "text",
    "pdf" => "application/pdf",
    "png" => "image/png",
    "pptx" => @office <> "presentationml.presentation",
    "rtf" => "application/rtf",
    "svg" => "image/svg+xml",
    "tsv" => "text/tab-separated-values",
    "txt" => "text/plain",
    "xlsx" => @workbook
  }

  @doc "The types of a kind."
  @spec of(Skillbook.Drive.kind()) :: [String.t(), ...]
  def of(kind), do: Keyword.fetch!(@kinds, kind)

  @doc "The kind of a type."
  @spec kind(String.t()) :: Skillbook.Drive.kind()
  def kind(type) do
    Enum.find_value(@kinds, :other, fn {kind, types} ->
      if Enum.any?(types, &(&1 == type or (String.ends_with?(&1, "/") and starts?(type, &1)))),
        do: kind
    end)
  end

  @doc "The kind of a file by its type and name. Many programs store Markdown as plain text."
  @spec kind(String.t(), String.t()) :: Skillbook.Drive.kind()
  def kind(type, name) do
    markdown? = String.downcase(Path.extname(name)) in [".md", ".markdown"]
    kind = kind(type)
    if kind in [:text, :other] and markdown? and not google?(type), do: :markdown, else: kind
  end

  defp starts?(type, family), do: String.starts_with?(type, family)

  @doc """
  The type that Google's own document is exported in, and the extension that its name gets;
  `:bytes` for files with bytes of their own, and `:none` if there is no export.
  """
  @spec export(String.t(), :file | :text) :: {String.t(), String.t()} | :bytes | :none
  def export(type, purpose) do
    case {@exports, purpose} do
      {%{^type => {type, extension, _}}, :file} -> {type, extension}
      {%{^type => {_, _, type}}, :text} -> {type, ""}
      _ -> if google?(type), do: :none, else: :bytes
    end
  end

  @doc "The formats that a document of a type is saved in; none for files with bytes."
  @spec formats(String.t()) :: [String.t()]
  def formats(type), do: Map.get(@formats, type, [])

  @doc "The type of a format."
  @spec format(String.t()) :: String.t()
  def format(extension), do: Map.fetch!(@format_types, extension)

  @doc "Whether the type is one of Google's own, whose files have no bytes."
  @spec google?(String.t()) :: boolean()
  def google?(type), do: String.starts_with?(type, @google)

  @doc "Google's type of documents, folders and shortcuts."
  @spec type(:document | :folder | :shortcut) :: String.t()
  def type(name), do: @google <> Atom.to_string(name)

  @doc "The size of a file that is written as a text; `nil` if it is none."
  @spec size(String.t() | nil) :: non_neg_integer() | nil
  def size(nil), do: nil

  def size(text) do
    case Number.integer(text) do
      {size, ""} when size >= 0 -> size
      _ -> nil
    end
  end
end
