defmodule Skillbook.Support.MediaType do
  @moduledoc false
  # The media types of files by their extensions.

  @types %{
    "avif" => "image/avif",
    "bmp" => "image/bmp",
    "c" => "text/x-c",
    "css" => "text/css",
    "csv" => "text/csv",
    "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "eex" => "text/plain",
    "epub" => "application/epub+zip",
    "ex" => "text/x-elixir",
    "exs" => "text/x-elixir",
    "gif" => "image/gif",
    "go" => "text/x-go",
    "gz" => "application/gzip",
    "heex" => "text/plain",
    "htm" => "text/html",
    "html" => "text/html",
    "ico" => "image/vnd.microsoft.icon",
    "ini" => "text/plain",
    "ipynb" => "application/x-ipynb+json",
    "java" => "text/x-java",
    "jpeg" => "image/jpeg",
    "jpg" => "image/jpeg",
    "js" => "text/javascript",
    "json" => "application/json",
    "jsonl" => "application/jsonl",
    "jsx" => "text/javascript",
    "log" => "text/plain",
    "lua" => "text/x-lua",
    "markdown" => "text/markdown",
    "md" => "text/markdown",
    "mjs" => "text/javascript",
    "mp3" => "audio/mpeg",
    "mp4" => "video/mp4",
    "odt" => "application/vnd.oasis.opendocument.text",
    "ogg" => "audio/ogg",
    "otf" => "font/otf",
    "pdf" => "application/pdf",
    "php" => "text/x-php",
    "pl" => "text/x-perl",
    "png" => "image/png",
    "pptx" => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "py" => "text/x-python",
    "r" => "text/x-r",
    "rb" => "text/x-ruby",
    "rs" => "text/x-rust",
    "rst" => "text/x-rst",
    "sh" => "text/x-shellscript",
    "sql" => "application/sql",
    "svg" => "image/svg+xml",
    "tar" => "application/x-tar",
    "tex" => "text/x-tex",
    "toml" => "application/toml",
    "ts" => "text/x-typescript",
    "tsv" => "text/tab-separated-values",
    "tsx" => "text/x-typescript",
    "ttf" => "font/ttf",
    "txt" => "text/plain",
    "wasm" => "application/wasm",
    "wav" => "audio/wav",
    "webp" => "image/webp",
    "woff" => "font/woff",
    "woff2" => "font/woff2",
    "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "xml" => "application/xml",
    "xsd" => "application/xml",
    "yaml" => "application/yaml",
    "yml" => "application/yaml",
    "zip" => "application/zip"
  }

  @doc """
  Returns the type of a file's name or path, `nil` if its extension is unknown.

      iex> Skillbook.Support.MediaType.of("references/FORMS.MD")
      "text/markdown"
      iex> Skillbook.Support.MediaType.of("Makefile")
      nil
  """
  @spec of(String.t()) :: String.t() | nil
  def of(path),
    do: @types[path |> Path.extname() |> String.trim_leading(".") |> String.downcase()]
end
