import { Buffer } from 'node:buffer'
import { asList, asObject, asText } from '../model/loose-json.ts'
import type { IncomingCall } from '../sandbox-call.ts'

/** A file as the stand-in received it. */
export interface ReceivedFile {
  readonly filename: string
  readonly contentType: string
  readonly bytes: Buffer
}

/** An edit request in whichever form it came. */
export interface ReceivedEdit {
  /** Text fields as the JSON form has them: numbers and booleans read. */
  readonly fields: Readonly<Record<string, unknown>>
  readonly images: readonly (ReceivedFile | undefined)[]
  /** Undefined: none. Null: one that the stand-in cannot see. */
  readonly mask: ReceivedFile | null | undefined
  readonly isForm: boolean
}

interface Part {
  readonly name: string
  readonly filename: string | undefined
  readonly contentType: string
  readonly bytes: Buffer
}

const BREAK = Buffer.from('\r\n')
const HEAD_END = Buffer.from('\r\n\r\n')

/** Reads an edit. Never throws; what cannot be read is missing. */
export function receivedEdit(call: IncomingCall, json: unknown): ReceivedEdit {
  const boundary = /^multipart\/form-data;.*?boundary="?([^";]+)"?/i.exec(call.headers['content-type'] ?? '')?.[1]
  return boundary === undefined
    ? editFromJson(asObject(json))
    : editFromForm(partsOf(Buffer.from(call.bytes), boundary))
}

function editFromForm(parts: readonly Part[]): ReceivedEdit {
  const fields = parts.filter((part) => part.filename === undefined)
  const files = parts.filter((part) => part.filename !== undefined)
  return {
    fields: Object.fromEntries(fields.map((part) => [part.name, fieldValue(part)])),
    images: files.filter((part) => part.name === 'image' || part.name === 'image[]').map(fileOf),
    mask: files.filter((part) => part.name === 'mask').map(fileOf)[0],
    isForm: true,
  }
}

function editFromJson(body: Readonly<Record<string, unknown>>): ReceivedEdit {
  const { images, mask, ...fields } = body
  return {
    fields,
    images: asList(images).map(referencedFile),
    mask: mask === undefined || mask === null ? undefined : (referencedFile(mask) ?? null),
    isForm: false,
  }
}

function referencedFile(reference: unknown): ReceivedFile | undefined {
  const match = /^data:([^;,]*);base64,(.*)$/s.exec(asText(asObject(reference)['image_url']))
  if (match === null) return undefined
  return { filename: '', contentType: match[1] ?? '', bytes: Buffer.from(match[2] ?? '', 'base64') }
}

function fieldValue({ name, bytes }: Part): unknown {
  const text = bytes.toString('utf8')
  if (/^(?:n|partial_images|output_compression)$/.test(name) && /^-?\d+$/.test(text)) return Number(text)
  return name === 'stream' && /^(?:true|false)$/.test(text) ? text === 'true' : text
}

function fileOf({ filename, contentType, bytes }: Part): ReceivedFile {
  return { filename: filename ?? '', contentType, bytes }
}

/** The parts of a form, as far as they are whole. */
function partsOf(body: Buffer, boundary: string): Part[] {
  const opening = Buffer.from(`--${boundary}`)
  const separator = Buffer.concat([BREAK, opening])
  const parts: Part[] = []
  let start = body.indexOf(opening)
  while (start !== -1) {
    // Every part but the first begins with the line break that ends the one before it.
    const head = start + (body[start] === BREAK[0] ? separator.length : opening.length)
    const headEnd = body.indexOf(HEAD_END, head)
    const next = headEnd === -1 ? -1 : body.indexOf(separator, headEnd)
    if (next === -1) return parts
    const part = partOf(body.toString('utf8', head, headEnd), body.subarray(headEnd + HEAD_END.length, next))
    if (part !== undefined) parts.push(part)
    start = next
  }
  return parts
}

function partOf(head: string, bytes: Buffer): Part | undefined {
  const disposition = /^content-disposition:(.*)$/im.exec(head)?.[1] ?? ''
  const name = /[; ]name="([^"]*)"/i.exec(disposition)?.[1]
  if (name === undefined || name === '__proto__') return undefined
  const filename = /[; ]filename="([^"]*)"/i.exec(disposition)?.[1]
  const contentType = /^content-type:\s*(\S+)/im.exec(head)?.[1] ?? 'application/octet-stream'
  return { name, filename, contentType, bytes }
}
