import { randomUUID } from 'node:crypto'
import { FormDataEncoder } from 'form-data-encoder'

/** A form as a request body. */
interface EncodedForm {
  /** `multipart/form-data; boundary=…`. */
  readonly contentType: string
  /** The body in order. File contents are the form's own chunks, not copies. */
  readonly chunks: readonly Uint8Array[]
  /** Length of the whole body, for `content-length`. */
  readonly byteLength: number
}

/**
 * Encodes a form as `multipart/form-data`, with the names, file names, types and order of its parts. In names, quotes and line
 * breaks become `%22`, `%0D` and `%0A` (HTML standard, "multipart form data"). Field values stay unchanged: the line break
 * conversion of the standard would alter prompts.
 *
 * Throws TypeError if the type of a file contains control characters, which could add headers.
 */
export function encodeForm(form: Form): EncodedForm {
  // An unpredictable boundary, so that a file cannot contain it and add parts.
  const encoder = new FormDataEncoder(formData(form), `form-${randomUUID()}`)
  const chunks: Uint8Array[] = []
  let byteLength = 0
  const add = (chunk: Uint8Array): void => {
    if (chunk.byteLength === 0) return
    chunks.push(chunk)
    byteLength += chunk.byteLength
  }
  // The encoder yields headers, content and a line break for each part, then the closing boundary.
  let position = 0
  for (const piece of encoder.values()) {
    const part = position % 3 === 1 ? form[(position - 1) / 3] : undefined
    if (part?.kind === 'field') add(Buffer.from(part.value))
    else if (part?.kind === 'file') part.chunks.forEach(add)
    else add(piece as Uint8Array)
    position++
  }
  return { contentType: encoder.contentType, chunks, byteLength }
}

/** The members of FormData that the encoder needs. */
class EncodableForm {
  readonly [Symbol.toStringTag] = 'FormData'
  readonly #entries: readonly [string, string | EncodableFile][]

  constructor(entries: readonly [string, string | EncodableFile][]) {
    this.#entries = entries
  }

  append(): never {
    throw new TypeError('this form is complete')
  }

  getAll(name: string): (string | EncodableFile)[] {
    return this.#entries.filter(([given]) => given === name).map(([, value]) => value)
  }

  entries(): ArrayIterator<[string, string | EncodableFile]> {
    return [...this.#entries].values()
  }

  [Symbol.iterator](): ArrayIterator<[string, string | EncodableFile]> {
    return this.entries()
  }
}

/** The members of File that the encoder needs. */
class EncodableFile {
  readonly [Symbol.toStringTag] = 'File'
  readonly name: string
  readonly type: string
  readonly size: number
  readonly lastModified = 0
  readonly #chunks: readonly Uint8Array[]

  constructor(file: FormFile) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the expression searches for control characters.
    if (/[\x00-\x1f\x7f]/.test(file.contentType)) throw new TypeError('the type of a file holds control characters')
    this.name = file.filename
    this.type = file.contentType
    this.size = file.byteLength
    this.#chunks = file.chunks
  }

  async *stream(): AsyncGenerator<Uint8Array> {
    yield* this.#chunks
  }
}

function formData(form: Form): EncodableForm {
  // Field contents are written above, so the encoder gets empty ones.
  return new EncodableForm(form.map((part) => [part.name, part.kind === 'file' ? new EncodableFile(part) : '']))
}

/** A text field of a form. */
export interface FormField {
  readonly kind: 'field'
  readonly name: string
  readonly value: string
}

/** A file of a form. Its bytes are slices of the body, not copies. */
export interface FormFile {
  readonly kind: 'file'
  readonly name: string
  readonly filename: string
  /** Content type as the caller wrote it. Default `application/octet-stream`. */
  readonly contentType: string
  readonly chunks: readonly Uint8Array[]
  readonly byteLength: number
}

/** One part of a form. */
export type FormPart = FormField | FormFile

/** A form in its original order. A list, because names are arbitrary and may repeat. */
export type Form = readonly FormPart[]
