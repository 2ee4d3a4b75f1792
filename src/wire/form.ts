// See docs/decisions/0001-packages.md.

import { Dicer } from '@fastify/busboy'
import { endOfTurn } from '../core/calls-in-flight.ts'
import { GatewayError } from '../core/errors.ts'
import { joinChunks } from './chunks.ts'
import { headerParameters, mediaType } from './headers.ts'
import type { Form, FormPart } from './write-form.ts'

/** Limits of `readForm`. A form that exceeds one is rejected, never truncated. */
export interface FormLimits {
  /** Maximum number of parts of any kind. Default 200. */
  readonly parts: number
  /** Maximum number of text fields. Default 100. */
  readonly fields: number
  /** Maximum number of files. Default 20. */
  readonly files: number
  /** Maximum size of one text field in bytes. Default 4,194,304: room for ten seconds of audio as a `data:` URL. */
  readonly fieldBytes: number
  /** Maximum size of one part's name in bytes. Default 200. */
  readonly nameBytes: number
  /** Maximum size of one part's headers in bytes. Default 16,384. */
  readonly headerBytes: number
}

/** The defaults of `readForm`. */
export const DEFAULT_FORM_LIMITS: FormLimits = {
  parts: 200,
  fields: 100,
  files: 20,
  fieldBytes: 4 * 1024 * 1024,
  nameBytes: 200,
  headerBytes: 16 * 1024,
}

/** If files are not kept in memory, the fields still are, so they have a lower limit. */
const STREAMED_FORM_LIMITS: FormLimits = { ...DEFAULT_FORM_LIMITS, fieldBytes: 1024 * 1024 }

// RFC 2046, section 5.1.1.
const BOUNDARY = /^[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]$/

/**
 * Reads a `multipart/form-data` body in memory. The parts keep the order of the body; the chunks of files are slices of `chunks`,
 * apart from a few bytes at their edges. Files have no limit of their own: the body's limit applies.
 *
 * A part is a file if it has a file name, or if it has an image, audio, video, font or `application/octet-stream` type; its file
 * name is then empty. Any other part is a text field, decoded as UTF-8 or in the charset of its type.
 *
 * Rejects with GatewayError `invalid_request` if `contentType` is not a form or has no valid boundary, if the form is incomplete,
 * if a part is malformed, or if a limit is exceeded.
 */
export async function readForm(
  contentType: string,
  chunks: readonly Uint8Array[],
  limits: Partial<FormLimits> = {},
): Promise<Form> {
  return new FormParser(boundaryOf(contentType), { ...DEFAULT_FORM_LIMITS, ...limits }).read(chunks)
}

/** Receives the bytes of a file while they arrive. */
export interface FileSink {
  push(bytes: Uint8Array): void
  /** Called when the file is complete. */
  end(): void
}

/**
 * Reads a form whose files are not kept in memory. Each file goes to the sink that `sinkOf` returns for it; its part has no bytes.
 * @param drained Resolves when the sinks can accept more; awaited after each piece of the body. Rejects like {@link readForm}, and
 *   with the errors of `body`, `sinkOf` and `drained`.
 */
export async function streamForm(
  contentType: string,
  body: AsyncIterable<Uint8Array>,
  files: { sinkOf(head: PartHead): FileSink; drained(): Promise<void> },
): Promise<Form> {
  return new FormParser(boundaryOf(contentType), STREAMED_FORM_LIMITS, files.sinkOf).readStream(body, files.drained)
}

function boundaryOf(contentType: string): string {
  const header = headerParameters(contentType)
  if (header?.value !== 'multipart/form-data') {
    throw new GatewayError('invalid_request', {
      message: 'The Content-Type header is not a valid multipart/form-data type.',
    })
  }
  const boundary = header.parameters.get('boundary')
  if (boundary === undefined || !BOUNDARY.test(boundary)) {
    throw new GatewayError('invalid_request', {
      message: 'The Content-Type header of the form has no boundary of 1 to 70 characters.',
    })
  }
  return boundary
}

interface ReadPart {
  head: PartHead | undefined
  readonly chunks: Uint8Array[]
  byteLength: number
  /** Receives the bytes instead of `chunks`. */
  sink: FileSink | undefined
}

// Far above any body, so that parts accept all bytes and the parser never waits for a reader.
const NO_BACKPRESSURE = 2 ** 40
// Maximum number of header lines per part. Browsers and clients write two or three.
const HEADER_LINES = 64
// Factor by which the parser may exceed the header limit. It truncates headers silently; larger ones are rejected here.
const KEPT_HEADERS = 4

// Number of bytes read before other work gets a turn of the event loop: about a millisecond of work, ten for a malicious body.
const TURN_BYTES = 1024 * 1024

/** Reads one form with the parser package. Not reusable. */
class FormParser {
  readonly #limits: FormLimits
  readonly #parser: Dicer
  readonly #parts: ReadPart[] = []
  readonly #sinkOf: ((head: PartHead) => FileSink) | undefined
  #files = 0
  #isWhole = true

  constructor(boundary: string, limits: FormLimits, sinkOf?: (head: PartHead) => FileSink) {
    this.#limits = limits
    this.#sinkOf = sinkOf
    const options = {
      boundary,
      maxHeaderPairs: HEADER_LINES,
      maxHeaderSize: limits.headerBytes * KEPT_HEADERS,
      partHwm: NO_BACKPRESSURE,
    }
    this.#parser = new Dicer(options)
    this.#parser.on('part', (stream: Dicer.PartStream) => this.#begin(stream))
    // The parser reports one fault: an end before the closing boundary.
    this.#parser.on('error', () => {
      this.#isWhole = false
    })
  }

  /** Returns the form. Throws GatewayError `invalid_request`; afterwards no work is left running. */
  async read(chunks: readonly Uint8Array[]): Promise<Form> {
    try {
      // An error of a listener stops `write` immediately, so a form of any length ends at the first exceeded limit.
      let sinceTurn = 0
      for (const piece of piecesOf(chunks)) {
        this.#parser.write(piece)
        sinceTurn += piece.byteLength
        if (sinceTurn < TURN_BYTES) continue
        sinceTurn = 0
        await endOfTurn()
      }
      return await this.#end()
    } finally {
      this.#parser.destroy()
    }
  }

  /** Reads a form whose body is still arriving. Files go to their sinks. */
  async readStream(body: AsyncIterable<Uint8Array>, drained: () => Promise<void>): Promise<Form> {
    try {
      for await (const piece of body) {
        this.#parser.write(piece)
        // The parser's streams defer by `nextTick`.
        await endOfTurn()
        await drained()
      }
      return await this.#end()
    } finally {
      this.#parser.destroy()
    }
  }

  async #end(): Promise<Form> {
    this.#parser.end()
    // The parser's streams defer by `nextTick` only, so all of them have ended in the next turn.
    await endOfTurn()
    if (!this.#isWhole) {
      throw new GatewayError('invalid_request', { message: 'The form ends before its closing boundary.' })
    }
    const form = this.#parts.map((part) => this.#finished(part))
    for (const { sink } of this.#parts) sink?.end()
    return form
  }

  #begin(stream: Dicer.PartStream): void {
    const part: ReadPart = { head: undefined, chunks: [], byteLength: 0, sink: undefined }
    this.#parts.push(part)
    this.#check('parts', this.#parts.length)
    stream.on('header', (headers) => {
      this.#checkHeaders(headers as PartHeaders)
      part.head = readPartHead(headers as PartHeaders)
      if (Buffer.byteLength(part.head.name) > this.#limits.nameBytes) {
        throw new GatewayError('invalid_request', {
          message: `The form has a name of more than ${this.#limits.nameBytes} bytes.`,
        })
      }
      if (part.head.filename !== undefined) this.#files++
      this.#check('files', this.#files)
      this.#check('fields', this.#parts.length - this.#files)
      if (part.head.filename !== undefined) part.sink = this.#sinkOf?.(part.head)
    })
    stream.on('data', (chunk) => {
      part.byteLength += chunk.length
      if (part.sink !== undefined) part.sink.push(chunk as Buffer)
      // A longer field is rejected at the end. In a streamed body it must not fill the memory until then.
      else if (this.#sinkOf === undefined || part.byteLength <= this.#limits.fieldBytes)
        part.chunks.push(chunk as Buffer)
    })
    // The parser itself reports the same fault.
    stream.on('error', () => undefined)
  }

  #finished(part: ReadPart): Form[number] {
    if (part.head === undefined) {
      throw new GatewayError('invalid_request', { message: 'The headers of a part of the form do not end.' })
    }
    const { fieldBytes } = this.#limits
    if (part.head.filename === undefined && part.byteLength > fieldBytes) {
      throw new GatewayError('invalid_request', {
        message: `A text field of the form has more than ${fieldBytes} bytes.`,
        param: part.head.name,
      })
    }
    return formPart(part.head, part.chunks, part.byteLength)
  }

  /**
   * Counts the headers that the parser kept. The parser drops up to two thirds of a folded line. Headers that it truncates, at
   * four times the limit, therefore still exceed the limit.
   */
  #checkHeaders(headers: PartHeaders): void {
    let lines = 0
    let bytes = 0
    for (const [name, values] of Object.entries(headers)) {
      for (const value of values ?? []) {
        lines++
        bytes += name.length + value.length + 4
      }
    }
    if (lines < HEADER_LINES && bytes <= this.#limits.headerBytes) return
    throw new GatewayError('invalid_request', {
      message: `A part of the form has more than ${this.#limits.headerBytes} bytes or ${HEADER_LINES - 1} lines of headers.`,
    })
  }

  #check(kind: 'parts' | 'fields' | 'files', count: number): void {
    const limit = this.#limits[kind]
    if (count <= limit) return
    throw new GatewayError('invalid_request', { message: `The form has more than ${limit} ${kind}.` })
  }
}

function* piecesOf(chunks: readonly Uint8Array[]): Generator<Uint8Array> {
  for (const chunk of chunks) {
    if (chunk.byteLength <= TURN_BYTES) {
      yield chunk
      continue
    }
    for (let start = 0; start < chunk.byteLength; start += TURN_BYTES) yield chunk.subarray(start, start + TURN_BYTES)
  }
}

/** Headers of one part by lower-case name, one character for each byte. */
type PartHeaders = Readonly<Record<string, readonly string[] | undefined>>

/** The content of a part's headers. */
interface PartHead {
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
function readPartHead(headers: PartHeaders): PartHead {
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
function formPart(head: PartHead, chunks: readonly Uint8Array[], byteLength: number): FormPart {
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
