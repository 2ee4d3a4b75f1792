import * as z from 'zod'
import { SPEECH_FORMATS } from '../../catalog/model-facts.ts'
import { GatewayError } from '../../core/errors.ts'
import { mediaType } from '../../wire/headers.ts'
import { defineTool, MAKES } from '../tool.ts'
import { idempotencyKey, model } from './arguments.ts'

/** Members of the request body, and the idempotency key. */
const speechArguments = z.looseObject({
  model,
  input: z.string().min(1).describe('The text to speak.'),
  voice: z.string().optional().describe('Name of a voice. Default Cherry.'),
  response_format: z.enum(SPEECH_FORMATS).optional().describe('Format of the audio. See gateway://catalog/{model}.'),
  instructions: z.string().optional().describe('Tone, speed and emotion in words, if the model supports them.'),
  stream_format: z.literal('audio').optional().describe('Tools return whole answers, so only audio is accepted.'),
  idempotency_key: idempotencyKey,
})

/** Tool for `POST /v1/audio/speech`, with a whole answer. */
export const synthesizeSpeech = defineTool({
  name: 'synthesize_speech',
  title: 'Speak a text',
  description: 'Turns a text into speech and returns the audio. Charged by the character.',
  annotations: MAKES,
  input: speechArguments,
  output: z.object({
    model: z.string(),
    mime_type: z.string(),
    bytes: z.int().describe('Size of the audio, which is the audio block of the result.'),
    characters: z.int().describe('Number of characters of the input, which are charged.'),
  }),
  async answer({ idempotency_key: key, ...body }, { call }) {
    const answer = await call({ method: 'POST', path: '/v1/audio/speech', body, idempotencyKey: key })
    const type = mediaType(answer.headers.get('content-type'))
    if (!type.startsWith('audio/')) throw new GatewayError('upstream_invalid_response')
    return {
      structured: {
        model: body.model,
        mime_type: type,
        bytes: answer.body.byteLength,
        characters: [...body.input].length,
      },
      content: [{ type: 'audio', data: answer.body.toString('base64'), mimeType: type }],
    }
  },
})
