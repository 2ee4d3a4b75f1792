import { Buffer } from 'node:buffer'
import { EDITS, editBody, generation, IMAGES, interaction, png } from './image-requests.ts'

const USAGE = {
  total_tokens: 1122,
  input_tokens: 2,
  input_tokens_details: { text_tokens: 2, image_tokens: 0 },
  output_tokens: 1120,
  output_tokens_details: { image_tokens: 1120, text_tokens: 0 },
}
const INTERACTION_USAGE = {
  total_tokens: 1122,
  total_input_tokens: 2,
  total_output_tokens: 1120,
  output_tokens_by_modality: [{ modality: 'image', tokens: 1120 }],
}

const PATTERN = Buffer.from(Array.from({ length: 1021 }, (_, index) => (index * 7) % 256))

/** Returns `length` characters of base64 that do not repeat within any power of two. */
export function base64(length: number): string {
  return Buffer.alloc((length / 4) * 3, PATTERN).toString('base64')
}

export const WHOLE = 'application/json'
const STREAM = 'text/event-stream'

/** Answers of all kinds with one image. */
export const ANSWERS: Readonly<
  Record<string, (picture: string) => { type: string; pieces: string[]; path: string; body: object }>
> = {
  'a generation': (picture) => ({
    type: WHOLE,
    pieces: [`{"created":1,"data":[{"b64_json":"${picture}"}],"usage":${JSON.stringify(USAGE)}}`],
    path: IMAGES,
    body: generation('a kettle'),
  }),
  'an edit': (picture) => ({
    type: WHOLE,
    pieces: [`{"created":1,"usage":${JSON.stringify(USAGE)},"data":[{"b64_json":"${picture}"}]}`],
    path: EDITS,
    body: editBody('a kettle'),
  }),
  'a streamed generation': (picture) => ({
    type: STREAM,
    pieces: [
      'event: image_generation.completed\n',
      `data: {"type":"image_generation.completed","b64_json":"${picture}","usage":${JSON.stringify(USAGE)}}\n\n`,
    ],
    path: IMAGES,
    body: generation('a kettle', { stream: true }),
  }),
  'an interaction': (picture) => ({
    type: WHOLE,
    pieces: [
      `{"id":"v1_Q2FmZQ","object":"interaction","model":"gemini-3.1-flash-image-preview","status":"completed","steps":[{"type":"model_output","content":[{"type":"image","mime_type":"image/png","data":"${picture}"}]}],"usage":${JSON.stringify(INTERACTION_USAGE)}}`,
    ],
    path: IMAGES,
    body: interaction('a kettle'),
  }),
  'a streamed interaction': (picture) => ({
    type: STREAM,
    pieces: [
      'event: interaction.created\ndata: {"interaction":{"id":"v1_Q2FmZQ","status":"in_progress","object":"interaction","model":"gemini-3.1-flash-image-preview"},"event_type":"interaction.created"}\n\n',
      'event: step.start\ndata: {"index":0,"step":{"type":"model_output"},"event_type":"step.start"}\n\n',
      `event: step.delta\ndata: {"index":0,"delta":{"type":"image","mime_type":"image/png","data":"${picture}"},"event_type":"step.delta"}\n\n`,
      'event: step.stop\ndata: {"index":0,"event_type":"step.stop"}\n\n',
      `event: interaction.completed\ndata: {"interaction":{"id":"v1_Q2FmZQ","object":"interaction","status":"completed","usage":${JSON.stringify(INTERACTION_USAGE)}},"event_type":"interaction.completed"}\n\n`,
      'data: [DONE]\n\n',
    ],
    path: IMAGES,
    body: interaction('a kettle', { stream: true }),
  }),
}

/** A PNG with so much behind its end that its base64 has this length. */
export function paddedPng(length: number): string {
  const bytes = Buffer.alloc((length / 4) * 3, PATTERN)
  bytes.set(png(64))
  return bytes.toString('base64')
}
