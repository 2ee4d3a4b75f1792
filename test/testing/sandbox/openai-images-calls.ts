import { Buffer } from 'node:buffer'
import { faultQueue } from '../../../src/testing/sandbox/fault.ts'
import { drawPicture, type PictureFormat } from '../../../src/testing/sandbox/files/draw-image.ts'
import { OPENAI_IMAGE_EDITS, OPENAI_IMAGES } from '../../../src/testing/sandbox/openai/openai-images.ts'
import { replyQueue } from '../../../src/testing/sandbox/scripted-reply.ts'
import { answeredCall } from '../../../src/testing/sandbox/transports.ts'
import { imageHeader } from '../../../src/wire/image-header.ts'
import { encodeForm, type Form } from '../../../src/wire/write-form.ts'
import { eventData, eventsOf, type Json } from './support/running-sandbox.ts'

/** An answer of the stand-in, read to its end. */
export interface PictureAnswer {
  readonly status: number
  readonly text: string
  readonly json: Json
  readonly events: Json[]
}

/** Calls text to image. */
export function generate(fields: object): PictureAnswer {
  const body = { model: 'gpt-image-2', prompt: 'a paper boat', ...fields }
  return ask('/v1/images/generations', 'application/json', Buffer.from(JSON.stringify(body)))
}

/** Calls an edit with a form of these fields and files. */
export function edit(fields: Record<string, string>, files: Form): PictureAnswer {
  const all = { model: 'gpt-image-2', prompt: 'make it blue', ...fields }
  const parts = Object.entries(all).map(([name, value]) => ({ kind: 'field' as const, name, value }))
  const { contentType, chunks } = encodeForm([...parts, ...files])
  return ask('/v1/images/edits', contentType, Buffer.concat(chunks))
}

/** Calls an edit in JSON. */
export function editJson(body: object): PictureAnswer {
  const all = { model: 'gpt-image-2', prompt: 'make it blue', ...body }
  return ask('/v1/images/edits', 'application/json', Buffer.from(JSON.stringify(all)))
}

/** Returns a file of a form that contains an image. */
export function pictureFile(name: string, side = 16, format: PictureFormat = 'png'): Form[number] {
  const bytes = drawPicture({ width: side, height: side, format, seed: 'a' })
  const contentType = `image/${format}`
  return { kind: 'file', name, filename: `a.${format}`, contentType, chunks: [bytes], byteLength: bytes.length }
}

/** Returns the format and size of an image in base64. */
export function pictureIn(base64: unknown): string {
  const header = imageHeader([Buffer.from(String(base64), 'base64')])
  return header === undefined ? 'no picture' : `${header.format} ${header.width}x${header.height}`
}

/** Sends a call to the stand-in, without a credential if `authorization` is empty. */
export function ask(
  path: string,
  contentType: string,
  bytes: Uint8Array,
  authorization = 'Bearer sk-test',
): PictureAnswer {
  const headers = {
    host: '127.0.0.1:4000',
    'content-type': contentType,
    ...(authorization === '' ? {} : { authorization }),
  }
  const { steps } = answeredCall(
    { method: 'POST', path, query: '', headers, bytes },
    {
      operations: [OPENAI_IMAGES, OPENAI_IMAGE_EDITS],
      faults: faultQueue(),
      replies: replyQueue(),
      eventDelayMs: 0,
      now: () => 1_795_168_800_000,
    },
  )
  let status = 0
  const pieces: Uint8Array[] = []
  for (let step = steps.next(); step.done !== true; step = steps.next()) {
    if (step.value.kind === 'head') status = step.value.status
    if (step.value.kind === 'bytes') pieces.push(step.value.bytes)
  }
  const text = Buffer.concat(pieces).toString('utf8')
  const isJson = text.startsWith('{')
  return { status, text, json: isJson ? JSON.parse(text) : undefined, events: isJson ? [] : eventData(eventsOf(text)) }
}
