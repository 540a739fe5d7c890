"""Writes small documents of every format into a folder, and broken ones: make.py FOLDER."""

import io
import sys
import zipfile
import zlib

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
ODF = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"'
)


def archive(files, method=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as made:
        for name, text in files.items():
            made.writestr(name, text)
    return out.getvalue()


def docx(body):
    return archive({"word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>"})


def bomb(megabytes):
    """A text of blanks, in a thousandth of their bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        with made.open("word/document.xml", "w", force_zip64=True) as file:
            file.write(f"<w:document {W}><w:p><w:r><w:t>".encode())
            for _ in range(megabytes):
                file.write(b" " * 1_000_000)
    return out.getvalue()


def paragraph(text, properties="", run=""):
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:rPr>{run}</w:rPr><w:t>{text}</w:t></w:r></w:p>"


def row(*cells):
    return "<w:tr>" + "".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in cells) + "</w:tr>"


def pptx(slides):
    files, ids, relations = {}, "", ""
    # The order of slides is not that of their files.
    for place, text in enumerate(slides):
        number = len(slides) - place
        files[f"ppt/slides/slide{number}.xml"] = (
            f'<p:sld xmlns:p="p" xmlns:a="a"><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sld>'
        )
        ids += f'<p:sldId id="{256 + place}" r:id="rId{number}"/>'
        relations += f'<Relationship Id="rId{number}" Target="slides/slide{number}.xml"/>'
    files["ppt/presentation.xml"] = f'<p:p xmlns:p="p" xmlns:r="{OFFICE}">{ids}</p:p>'
    files["ppt/_rels/presentation.xml.rels"] = f"<Relationships>{relations}</Relationships>"
    return archive(files)


def xlsx(rows):
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    package = "http://schemas.openxmlformats.org/package/2006"
    return archive(
        {
            "[Content_Types].xml": f'<Types xmlns="{package}/content-types"/>',
            "_rels/.rels": f'<Relationships xmlns="{package}/relationships">'
            f'<Relationship Id="rId1" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
            "</Relationships>",
            "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{OFFICE}"><sheets>'
            '<sheet name="Sums" sheetId="1" r:id="rId1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
            f'<Relationship Id="rId1" Type="{OFFICE}/worksheet" '
            'Target="worksheets/sheet1.xml"/></Relationships>',
            "xl/styles.xml": f'<styleSheet xmlns="{main}"><cellXfs><xf numFmtId="0"/>'
            '<xf numFmtId="14"/></cellXfs></styleSheet>',
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{rows}'
            "</sheetData></worksheet>",
        }
    )


def odf(body):
    return archive({"content.xml": f"<office:document-content {ODF}>{body}</office:document-content>"})


def pdf(lines, extra="", more=b"null"):
    text = "BT /F1 12 Tf 72 720 Td 14 TL " + "".join(f"({line}) Tj T* " for line in lines) + "ET"
    stream = zlib.compress(text.encode())
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R"
        b"/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        more,
    ]
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer<</Size %d/Root 1 0 R%s>>\n" % (len(objects) + 1, extra.encode())
    return out + b"startxref\n%d\n%%%%EOF\n" % table


FILES = {
    "good.docx": docx(
        paragraph("Report &amp; plan", '<w:pStyle w:val="Heading1"/>')
        + paragraph("First")
        + paragraph("hidden", run="<w:vanish/>")
        + "<w:p><w:del><w:r><w:delText>deleted</w:delText></w:r></w:del></w:p>"
        + paragraph("item", "<w:numPr/>")
        + f"<w:tbl>{row('Name', 'Sum')}{row('Ann', '1')}</w:tbl>"
    ),
    "good.pptx": pptx(["One", "Two"]),
    "good.xlsx": xlsx(
        '<row r="1"><c r="A1" t="inlineStr"><is><t>Name, first</t></is></c>'
        '<c r="C1" t="inlineStr"><is><t>Sum</t></is></c></row>'
        '<row r="3"><c r="A3" t="b"><v>1</v></c><c r="C3"><v>1.5</v></c>'
        '<c r="D3" s="1"><v>45000</v></c></row>'
    ),
    "good.odt": odf(
        '<text:h text:outline-level="2">Head</text:h><text:p>One<text:s text:c="2"/>two</text:p>'
        "<office:annotation><text:p>note</text:p></office:annotation>"
        "<text:list-item><text:p>item</text:p></text:list-item>"
    ),
    "good.ods": odf(
        '<table:table table:name="Sums"><table:table-row><table:table-cell><text:p>a</text:p>'
        "</table:table-cell><table:table-cell><text:p>b</text:p></table:table-cell>"
        "</table:table-row></table:table>"
    ),
    "good.odp": odf('<draw:page draw:name="First"><text:p>text</text:p></draw:page>'),
    "good.pdf": pdf(["Hello PDF", "second line"]),
    # Broken and hostile ones.
    "empty.docx": docx(""),
    "nothing.docx": b"",
    "text.docx": b"no archive",
    "cut.docx": docx(paragraph("a" * 10_000))[:-30],
    "old.docx": bytes.fromhex("d0cf11e0a1b11ae1") + b"\0" * 600,
    "missing.docx": archive({"a": "b"}),
    "badxml.docx": archive({"word/document.xml": "<a><b></a>"}),
    "deep.docx": docx("<w:p>" * 100_000),
    "bomb.docx": bomb(150),
    "long.docx": docx(paragraph("word " * 1_000_000)),
    "entities.docx": archive(
        {
            "word/document.xml": '<!DOCTYPE a [<!ENTITY x "yyyyyyyyyy"><!ENTITY z "&x;&x;&x;">]>'
            f"<w:document {W}>{paragraph('a&z;b')}</w:document>"
        }
    ),
    "many.docx": archive({f"{number}": "" for number in range(11_000)}, zipfile.ZIP_STORED),
    "wide.xlsx": xlsx('<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'),
    "cells.xlsx": xlsx(
        "".join(
            f'<row r="{number}"><c r="A{number}"><v>{number}</v></c><c r="SZ{number}"><v>2</v></c></row>'
            for number in range(1, 20_000)
        )
    ),
    "repeated.ods": odf(
        '<table:table table:name="a"><table:table-row table:number-rows-repeated="1048576">'
        '<table:table-cell table:number-columns-repeated="16384"><text:p>x</text:p>'
        "</table:table-cell></table:table-row></table:table>"
    ),
    "blanks.odt": odf('<text:p>a<text:s text:c="4000000000"/>b</text:p>'),
    "nothing.pdf": b"",
    "cut.pdf": pdf(["Hello"])[:200],
    "pictures.pdf": pdf([]),
    "nested.pdf": pdf(["Hello"], "/X 6 0 R", b"[" * 200_000),
    "encrypted.pdf": pdf(
        ["secret"],
        "/Encrypt 6 0 R/ID[<00><00>]",
        b"<</Filter/Standard/V 1/R 2/P -4/O<%s>/U<%s>>>" % (b"41" * 32, b"42" * 32),
    ),
}

if __name__ == "__main__":
    for name, content in FILES.items():
        with open(f"{sys.argv[1]}/{name}", "wb") as file:
            file.write(content)
