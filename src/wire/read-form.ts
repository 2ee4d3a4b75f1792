import { Dicer } from '@fastify/busboy'
import { GatewayError } from '../core/errors.ts'
import { formPart, type PartHead, type PartHeaders, readPartHead } from './form-part.ts'
import { headerParameters } from './headers.ts'
import type { Form } from './multipart.ts'

/** Bounds of `readForm`. A form that goes beyond one is refused, never cut. */
export interface FormLimits {
  /** Parts of any kind. Default 200. */
  readonly parts: number
  /** Text fields. Default 100. */
  readonly fields: number
  /** Files. Default 20. */
  readonly files: number
  /** Bytes of one text field. Default 1,048,576. */
  readonly fieldBytes: number
  /** Bytes of one part's name. Default 200. */
  readonly nameBytes: number
  /** Bytes of one part's headers. Default 16,384. */
  readonly headerBytes: number
}

/** What holds where a caller of `readForm` says nothing else. */
export const DEFAULT_FORM_LIMITS: FormLimits = {
  parts: 200,
  fields: 100,
  files: 20,
  fieldBytes: 1024 * 1024,
  nameBytes: 200,
  headerBytes: 16 * 1024,
}

// RFC 2046, section 5.1.1.
const BOUNDARY = /^[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]$/

/**
 * Reads a `multipart/form-data` body that is in memory. The parts come in the order of the body; the chunks of files are
 * slices of `chunks`, apart from a few bytes at their edges. Files are not bounded one by one: the body itself is.
 *
 * A part counts as a file when it has a file name, or when it has none but an image, audio, video, font or
 * `application/octet-stream` type; its file name is then empty. All else is a text field, read as UTF-8 or in the charset that
 * its type names.
 *
 * Rejects with GatewayError `invalid_request` when `contentType` is no form or has no proper boundary, when the form is cut
 * short, when a part cannot be understood, and when a limit is passed.
 */
export async function readForm(
  contentType: string,
  chunks: readonly Uint8Array[],
  limits: Partial<FormLimits> = {},
): Promise<Form> {
  return new FormParser(boundaryOf(contentType), { ...DEFAULT_FORM_LIMITS, ...limits }).read(chunks)
}

function boundaryOf(contentType: string): string {
  const header = headerParameters(contentType)
  if (header?.value !== 'multipart/form-data') {
    throw new GatewayError('invalid_request', {
      message: 'The Content-Type header is not a proper multipart/form-data.',
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
}

// Far above any body, so that parts take what they are given at once and the parser never waits for a reader.
const NO_BACKPRESSURE = 2 ** 40
// Header lines of one part; browsers and clients write two or three.
const HEADER_LINES = 64
// The parser cuts headers without saying so; it may keep this many times the limit, and what is over it is refused here.
const KEPT_HEADERS = 4

// How much is read before others get a turn of the event loop: about a millisecond's work, ten for a body made to be slow.
const TURN_BYTES = 1024 * 1024

/** Takes one form apart by means of the parser package. For one use. */
class FormParser {
  readonly #limits: FormLimits
  readonly #parser: Dicer
  readonly #parts: ReadPart[] = []
  #files = 0
  #isWhole = true

  constructor(boundary: string, limits: FormLimits) {
    this.#limits = limits
    const options = {
      boundary,
      maxHeaderPairs: HEADER_LINES,
      maxHeaderSize: limits.headerBytes * KEPT_HEADERS,
      partHwm: NO_BACKPRESSURE,
    }
    this.#parser = new Dicer(options)
    this.#parser.on('part', (stream: Dicer.PartStream) => this.#begin(stream))
    // The one fault that the parser knows is an end before the closing boundary.
    this.#parser.on('error', () => {
      this.#isWhole = false
    })
  }

  /** The form. Throws GatewayError `invalid_request`; afterwards nothing of it runs any more. */
  async read(chunks: readonly Uint8Array[]): Promise<Form> {
    try {
      // What the listeners throw leaves `write` at once, so a form of any length stops at the first limit that it breaks.
      let sinceTurn = 0
      for (const piece of piecesOf(chunks)) {
        this.#parser.write(piece)
        sinceTurn += piece.byteLength
        if (sinceTurn < TURN_BYTES) continue
        sinceTurn = 0
        await nextTurn()
      }
      this.#parser.end()
      // The streams of the parser defer by `nextTick` only, so they have all ended when the loop comes round.
      await nextTurn()
      if (!this.#isWhole) {
        throw new GatewayError('invalid_request', { message: 'The form ends before its closing boundary.' })
      }
      return this.#parts.map((part) => this.#finished(part))
    } finally {
      this.#parser.destroy()
    }
  }

  #begin(stream: Dicer.PartStream): void {
    const part: ReadPart = { head: undefined, chunks: [], byteLength: 0 }
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
    })
    stream.on('data', (chunk) => {
      part.chunks.push(chunk as Buffer)
      part.byteLength += chunk.length
    })
    // The parser itself reports the same fault.
    stream.on('error', () => undefined)
  }

  #finished(part: ReadPart): Form[number] {
    if (part.head === undefined) {
      throw new GatewayError('invalid_request', { message: 'A part of the form has no end of its headers.' })
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
   * Counts what the parser kept. Of a folded line it loses up to two thirds, so headers that it cut, at four times the
   * limit, still count as more than the limit.
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

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
