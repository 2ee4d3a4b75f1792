import { Buffer } from 'node:buffer'
import type { ContentBlock } from '@modelcontextprotocol/server'
import * as z from 'zod'
import { isJsonObject } from '../../core/json.ts'
import { imageHeader } from '../../wire/image-header.ts'

/** Output of the image tools. Bytes are in image blocks of the result; URLs are also in links. */
export const picturesOutput = z.object({
  model: z.string(),
  images: z.array(
    z.object({
      kind: z.enum(['inline', 'url']).describe('inline: an image block of the result, in the same order.'),
      mime_type: z.string().optional(),
      url: z.string().optional().describe('Valid for a limited time.'),
    }),
  ),
  text: z.string().optional().describe('Text of the model in addition to the images.'),
  interaction_id: z.string().optional().describe('For previous_interaction_id.'),
  status: z.string().optional().describe('failed, without images, if the model refused.'),
  usage: z.record(z.string(), z.unknown()).optional(),
})

/** Image in an answer. */
type Picture = { readonly data: string; readonly mimeType: string } | { readonly url: string }

type Members = Readonly<Record<string, unknown>>

/** Collects the images of an answer in any of the three response shapes. */
export function answeredPictures(answer: Members, model: string) {
  const found = [...listedPictures(answer), ...choicePictures(answer), ...stepPictures(answer)]
  const texts = blocksOfSteps(answer).flatMap(({ type, text }) => (type === 'text' ? [String(text)] : []))
  const { id, status, usage } = answer
  const isInteraction = Array.isArray(answer['steps'])
  return {
    structured: {
      model,
      images: found.map((picture) =>
        'url' in picture ? { kind: 'url', url: picture.url } : { kind: 'inline', mime_type: picture.mimeType },
      ),
      ...(texts.length === 0 ? {} : { text: texts.join('\n') }),
      ...(isInteraction && typeof id === 'string' ? { interaction_id: id } : {}),
      ...(isInteraction && typeof status === 'string' ? { status } : {}),
      ...(isJsonObject(usage) ? { usage } : {}),
    },
    content: found.map(contentBlock),
  }
}

function contentBlock(picture: Picture, index: number): ContentBlock {
  return 'url' in picture
    ? { type: 'resource_link', uri: picture.url, name: `image ${index + 1}` }
    : { type: 'image', data: picture.data, mimeType: picture.mimeType }
}

/** Reads OpenAI's shape: `data[]` with `b64_json` or `url`. */
function listedPictures({ data }: Members): Picture[] {
  return objects(data).flatMap(({ b64_json: base64, url }): Picture[] => {
    if (typeof base64 === 'string') return [{ data: base64, mimeType: typeOf(base64) }]
    return typeof url === 'string' ? [{ url }] : []
  })
}

/** Reads the multimodal shape: `output.choices[].message.content[].image`, a URL. */
function choicePictures({ output }: Members): Picture[] {
  const choices = isJsonObject(output) ? objects(output['choices']) : []
  return choices
    .flatMap(({ message }) => (isJsonObject(message) ? objects(message['content']) : []))
    .flatMap(({ image }) => (typeof image === 'string' ? [{ url: image }] : []))
}

/** Reads the interactions shape: an image may be in any block of any step. */
function stepPictures(answer: Members): Picture[] {
  return blocksOfSteps(answer).flatMap(({ type, data, mime_type: mimeType, uri }): Picture[] => {
    if (type !== 'image') return []
    if (typeof data === 'string') return [{ data, mimeType: typeof mimeType === 'string' ? mimeType : typeOf(data) }]
    return typeof uri === 'string' ? [{ url: uri }] : []
  })
}

function blocksOfSteps({ steps }: Members): Members[] {
  return objects(steps).flatMap((step) => (step['type'] === 'model_output' ? objects(step['content']) : []))
}

function objects(value: unknown): Members[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}

/** Amount of base64 that contains the headers of PNG and WebP, and of most JPEG files. */
const HEADER_BASE64_LENGTH = 65_536

/** Returns the media type from the image's first bytes, or `image/png`, the models' default, if they are not recognised. */
function typeOf(base64: string): string {
  const header = imageHeader([Buffer.from(base64.slice(0, HEADER_BASE64_LENGTH), 'base64')])
  return `image/${header?.format ?? 'png'}`
}
