import { Buffer } from 'node:buffer'
import { drawPicture } from '../../../src/testing/sandbox/files/draw-image.ts'
import { TEST_KEY } from '../../support/start-gateway.ts'

export const IMAGES = '/v1/images/generations'
export const EDITS = '/v1/images/edits'

type Members = Readonly<Record<string, unknown>>

/** A request in the multimodal shape. */
export function multimodal(text: string, rest: Members = {}): Members {
  return { model: 'qw-image-2.0', input: { messages: [{ role: 'user', content: [{ text }] }] }, ...rest }
}

/** A request in the interactions shape. */
export function interaction(input: unknown, rest: Members = {}): Members {
  return { model: 'gmn-3.1-flash-image-preview', input, ...rest }
}

/** Text to image in OpenAI's shape. */
export function generation(prompt: string, rest: Members = {}): Members {
  return { model: 'gp-image-2', prompt, ...rest }
}

/** Creates an image as a PNG file. */
export function png(width: number, height = width, seed = 'one'): Uint8Array<ArrayBuffer> {
  return new Uint8Array(drawPicture({ width, height, format: 'png', seed }))
}

/** Creates an image as a `data:` URL. */
export function pngUrl(side: number): string {
  return `data:image/png;base64,${Buffer.from(png(side)).toString('base64')}`
}

/** Creates an edit in JSON with one small image. */
export function editBody(prompt: string, rest: Members = {}): Members {
  return { model: 'gp-image-2', prompt, images: [{ image_url: pngUrl(64) }], ...rest }
}

/** A file of a form. */
export interface FormUpload {
  readonly name: string
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly type?: string
}

/** An edit as a form: text fields, then files. */
export function editForm(fields: Readonly<Record<string, string>>, files: readonly FormUpload[]): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries({ model: 'gp-image-2', prompt: 'more light', ...fields })) {
    form.append(name, value)
  }
  for (const { name, bytes, type = 'image/png' } of files) form.append(name, new Blob([bytes], { type }), 'file.png')
  return form
}

/** Sends a form with the test key. */
export function postForm(url: string, form: FormData, headers: Readonly<Record<string, string>> = {}) {
  return fetch(`${url}${EDITS}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TEST_KEY}`, ...headers },
    body: form,
  })
}

/** A request of every shape whose prompt is `prompt`: name, path, body. */
export function everyShape(prompt: string, rest: Members = {}): readonly (readonly [string, string, Members])[] {
  return [
    ['multimodal', IMAGES, multimodal(prompt, rest)],
    ['interactions', IMAGES, interaction(prompt, rest)],
    ['generations', IMAGES, generation(prompt, rest)],
    ['edits', EDITS, editBody(prompt, rest)],
  ]
}
