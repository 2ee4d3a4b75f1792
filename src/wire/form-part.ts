import { GatewayError } from '../core/errors.ts'
import { headerParameters, mediaType } from './headers.ts'
import { joinChunks } from './join-chunks.ts'
import type { FormPart } from './multipart.ts'

/** Headers of one part by lower-case name, one character for each byte. */
export type PartHeaders = Readonly<Record<string, readonly string[] | undefined>>

/** The content of a part's headers. */
export interface PartHead {
  readonly name: string
  /** File name without folders; undefined for a text field. */
  readonly filename: string | undefined
  /** Content type as written; undefined if there is none. */
  readonly contentType: string | undefined
}

// RFC 7578, section 4.7, forbids other encodings in forms; this code does not decode them.
const PLAIN_ENCODINGS = new Set(['', '7bit', '8bit', 'binary'])
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression searches for control characters.
const CONTROL_CHARACTER = /[\x00-\x1f\x7f]/
// Parts of these types are files even without a file name, as for an unnamed blob.
const BINARY_TYPE = /^(?:(?:image|audio|video|font)\/|application\/octet-stream$)/

/**
 * Reads the headers of one part (RFC 7578). `filename*` (RFC 5987) takes precedence over `filename`; `%22`, `%0D` and `%0A` in
 * quoted names are decoded (HTML standard, "multipart form data"). Keeps only the last segment of a path, as RFC 7578, section
 * 4.2, advises: folders reveal details of the caller's machine, and a name with `..` may be used as a path elsewhere. Throws
 * GatewayError `invalid_request`.
 */
export function readPartHead(headers: PartHeaders): PartHead {
  const dispositions = headers['content-disposition'] ?? []
  const disposition = dispositions.length === 1 ? headerParameters(dispositions[0] ?? '') : undefined
  const rawName = disposition?.parameters.get('name')
  if (disposition === undefined || disposition.value !== 'form-data' || rawName === undefined) {
    throw new GatewayError('invalid_request', {
      message: 'A part of the form has no Content-Disposition header of the form: form-data; name="…".',
    })
  }
  const name = undoEscapes(utf8Of(rawName))
  const encoding = (headers['content-transfer-encoding']?.[0] ?? '').trim().toLowerCase()
  if (!PLAIN_ENCODINGS.has(encoding)) {
    throw new GatewayError('invalid_request', {
      message: 'A part of the form has a Content-Transfer-Encoding; send the bytes as they are.',
      param: name,
    })
  }
  const contentType = headers['content-type']?.[0]?.trim() || undefined
  if (contentType !== undefined && CONTROL_CHARACTER.test(contentType)) {
    throw new GatewayError('invalid_request', {
      message: 'A part of the form has a Content-Type with control characters.',
      param: name,
    })
  }
  const extended = disposition.parameters.get('filename*')
  const plain = disposition.parameters.get('filename')
  const given =
    extended === undefined ? (plain === undefined ? undefined : undoEscapes(utf8Of(plain))) : decoded(extended)
  const filename = given !== undefined ? lastSegment(given) : BINARY_TYPE.test(mediaType(contentType)) ? '' : undefined
  return { name, filename, contentType: contentType === undefined ? undefined : utf8Of(contentType) }
}

/** Returns the last segment of a path with either separator. Empty if no name remains. */
function lastSegment(path: string): string {
  const name = path.split(/[\\/]/).findLast((segment) => segment !== '') ?? ''
  return name === '.' || name === '..' ? '' : name
}

/** Creates a part from its head and bytes. Throws GatewayError `invalid_request` for a field that is not text. */
export function formPart(head: PartHead, chunks: readonly Uint8Array[], byteLength: number): FormPart {
  const { name, filename, contentType } = head
  if (filename !== undefined) {
    return { kind: 'file', name, filename, contentType: contentType ?? 'application/octet-stream', chunks, byteLength }
  }
  const charset = headerParameters(contentType ?? '')?.parameters.get('charset') ?? 'utf-8'
  return { kind: 'field', name, value: textOf(joinChunks(chunks), charset, name) }
}

/** Header text has one character per byte; the bytes are UTF-8. */
function utf8Of(text: string): string {
  return textOf(Buffer.from(text, 'latin1'), 'utf-8', undefined)
}

/** RFC 5987: charset, language and percent-encoded text, separated by quotes. */
function decoded(text: string): string {
  const parts = /^([^']*)'[^']*'([^']*)$/.exec(text)
  const encoded = parts?.[2] ?? ''
  if (parts === null || /%(?![0-9a-f]{2})/i.test(encoded)) {
    throw new GatewayError('invalid_request', {
      message: 'A file name of the form is not encoded according to RFC 5987.',
    })
  }
  const plain = encoded.replace(/%([0-9a-f]{2})/gi, (_match, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  )
  return textOf(Buffer.from(plain, 'latin1'), parts[1] ?? '', undefined)
}

function undoEscapes(text: string): string {
  return text.replace(/%22|%0d|%0a/gi, (sequence) => decodeURIComponent(sequence))
}

function textOf(bytes: Uint8Array, charset: string, param: string | undefined): string {
  try {
    return new TextDecoder(charset, { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    throw new GatewayError('invalid_request', {
      message: 'A name or a value of the form is not text in UTF-8 or in its declared charset.',
      param,
      cause,
    })
  }
}
