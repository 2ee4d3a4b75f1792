import { Buffer } from 'node:buffer'
import type { IncomingCall } from '../sandbox-operation.ts'

/** A part of a form as the stand-in received it. */
export interface FormPart {
  readonly name: string
  /** File name, or `undefined` for a text field. */
  readonly filename: string | undefined
  readonly contentType: string
  readonly bytes: Buffer
}

const BREAK = Buffer.from('\r\n')
const HEAD_END = Buffer.from('\r\n\r\n')

/** Returns the complete parts of a form, or `undefined` if the body is not a form. Never throws. */
export function formParts({ headers, bytes }: Pick<IncomingCall, 'headers' | 'bytes'>): FormPart[] | undefined {
  const boundary = /^multipart\/form-data;.*?boundary="?([^";]+)"?/i.exec(headers['content-type'] ?? '')?.[1]
  return boundary === undefined ? undefined : partsOf(Buffer.from(bytes), boundary)
}

/** Returns the text of a field, or an empty string. */
export function formText(parts: readonly FormPart[] | undefined, name: string): string {
  return parts?.find((part) => part.name === name)?.bytes.toString('utf8') ?? ''
}

function partsOf(body: Buffer, boundary: string): FormPart[] {
  const opening = Buffer.from(`--${boundary}`)
  const separator = Buffer.concat([BREAK, opening])
  const parts: FormPart[] = []
  let start = body.indexOf(opening)
  while (start !== -1) {
    // Every part except the first begins with the line break that ends the previous one.
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

function partOf(head: string, bytes: Buffer): FormPart | undefined {
  const disposition = /^content-disposition:(.*)$/im.exec(head)?.[1] ?? ''
  const name = /[; ]name="([^"]*)"/i.exec(disposition)?.[1]
  if (name === undefined || name === '__proto__') return undefined
  const filename = /[; ]filename="([^"]*)"/i.exec(disposition)?.[1]
  const contentType = /^content-type:\s*(\S+)/im.exec(head)?.[1] ?? 'application/octet-stream'
  return { name, filename, contentType, bytes }
}
