import { Buffer } from 'node:buffer'
import { drawSound, wavFile } from '../files/stored-files.ts'
import { transcribeFixture } from '../model/embedding.ts'
import { formParts, formText } from '../openai-dialect/form-parts.ts'
import { asText, isGiven } from '../request-fields.ts'
import {
  type AnswerContext,
  eventText,
  fileReply,
  jsonReply,
  RefusedCall,
  type SandboxCall,
  type SandboxReply,
  streamReply,
  vendorOperations,
} from '../sandbox-operation.ts'
import { OPENAI_ERRORS, OPENAI_HEADERS, openaiOperation, refuseOpenai, refuseRepeatedParts } from './openai-models.ts'

const MODELS: readonly string[] = ['tts-1', 'tts-1-hd', 'gpt-4o-mini-tts']
const VOICES = 'alloy ash ballad coral echo fable onyx nova sage shimmer verse marin cedar'.split(' ')
const MAX_CHARACTERS = 4096

/** Media types that OpenAI answers with, and the first bytes of these files. */
const FILES: Readonly<Record<string, readonly [type: string, firstBytes: Buffer]>> = {
  pcm: ['audio/pcm', Buffer.alloc(0)],
  wav: ['audio/wav', Buffer.alloc(0)],
  opus: ['audio/opus', Buffer.from('OggS', 'latin1')],
  aac: ['audio/aac', Buffer.from([0xff, 0xf1, 0x50, 0x80])],
  flac: ['audio/flac', Buffer.from('fLaC', 'latin1')],
}

/**
 * OpenAI: `POST /v1/audio/speech`. The sound is a tone for each character. `opus`, `aac` and `flac` are
 * samples after the first bytes of such a file, which no player reads.
 */
export const OPENAI_SPEECH = openaiOperation({
  operation: 'speech',
  post: '/v1/audio/speech',
  prompt: ({ input }) => asText(input),
  answer(_call, _context, { model, input, voice, response_format: format, instructions }) {
    if (!MODELS.includes(asText(model))) throw new RefusedCall(OPENAI_ERRORS.status(404))
    const text = asText(input)
    if (text === '') refuseOpenai("Missing required parameter: 'input'.", 'input')
    if (text.length > MAX_CHARACTERS) refuseOpenai(`String should have at most ${MAX_CHARACTERS} characters`, 'input')
    if (!VOICES.includes(asText(voice))) refuseOpenai(`Input should be one of ${VOICES.join(', ')}`, 'voice')
    if (isGiven(instructions) && asText(model).startsWith('tts-1'))
      refuseOpenai("'instructions' is not supported by this model.", 'instructions')
    const file = FILES[asText(format)]
    if (file === undefined)
      return refuseOpenai(`Input should be one of ${Object.keys(FILES).join(', ')}`, 'response_format')
    const [type, firstBytes] = file
    const sound = drawSound(text)
    return fileReply(type, format === 'wav' ? wavFile(sound) : Buffer.concat([firstBytes, sound]), OPENAI_HEADERS)
  },
})

/** Formats of the transcripts of a model, and whether it reports seconds instead of tokens, and streams. */
interface TranscriptionModel {
  readonly formats: readonly string[]
  readonly reportsSeconds?: boolean
  readonly streams?: boolean
}

const WHISPER: TranscriptionModel = { formats: ['json', 'text', 'srt', 'vtt', 'verbose_json'], reportsSeconds: true }
const TRANSCRIPTION_MODELS: ReadonlyMap<string, TranscriptionModel> = new Map([
  ['gpt-transcribe', { formats: ['json', 'text'], reportsSeconds: true, streams: true }],
  ['gpt-4o-transcribe', { formats: ['json'], streams: true }],
  ['gpt-4o-mini-transcribe', { formats: ['json'], streams: true }],
  ['gpt-4o-transcribe-diarize', { formats: ['json', 'text', 'diarized_json'], streams: true }],
  ['whisper-1', WHISPER],
])
const EXTENSION = /\.(?:flac|mp3|mp4|mpeg|mpga|m4a|ogg|wav|webm)$/i
const LISTS = 'timestamp_granularities include known_speaker_names known_speaker_references keywords languages'.split(
  ' ',
)
const TOKENS_PER_SECOND = 10
/** Values that Whisper reports for every segment in addition to its text. */
const MEASURES = { tokens: [50364], temperature: 0, avg_logprob: -0.2, compression_ratio: 1.1, no_speech_prob: 0.01 }

/**
 * OpenAI: `POST /v1/audio/transcriptions`. The text states how long the recording is. There are ten tokens per second and one per
 * word; `text`, `srt` and `vtt` report nothing.
 */
export const OPENAI_TRANSCRIPTIONS = openaiOperation({
  operation: 'transcriptions',
  post: '/v1/audio/transcriptions',
  needsJson: false,
  prompt: (_request, call) => formText(formParts(call), 'prompt'),
  answer(call, context) {
    const model = TRANSCRIPTION_MODELS.get(formText(formParts(call), 'model'))
    if (model === undefined) throw new RefusedCall(OPENAI_ERRORS.status(404))
    return transcription(call, context, model)
  },
})

/** The servers of `signalbox/presets` that serve Whisper. */
export const PRESET_TRANSCRIPTIONS = vendorOperations({ vendor: 'presets', errors: OPENAI_ERRORS })({
  operation: 'transcriptions',
  post: /^\/presets\/[^/]+\/v1\/audio\/transcriptions$/,
  needsJson: false,
  prompt: (_request, call) => formText(formParts(call), 'prompt'),
  answer: (call, context) => transcription(call, context, WHISPER),
})

function transcription(call: SandboxCall, context: AnswerContext, model: TranscriptionModel): SandboxReply {
  const parts = formParts(call)
  refuseRepeatedParts(parts, LISTS)
  const file = parts?.find(({ name }) => name === 'file')
  if (file?.filename === undefined) refuseOpenai("Missing required parameter: 'file'.", 'file')
  if (!EXTENSION.test(file.filename)) refuseOpenai(`Unrecognized file format: ${file.filename}.`, 'file')
  const format = formText(parts, 'response_format') || 'json'
  if (!model.formats.includes(format))
    refuseOpenai(`response_format '${format}' is not compatible with this model.`, 'response_format')
  const heard = transcribeFixture(file.bytes, context.script)
  if (heard === undefined) refuseOpenai('The audio file could not be decoded or its format is not supported.', 'file')
  const { text, seconds, segments, tokens } = heard
  const audio = Math.ceil(seconds * TOKENS_PER_SECOND)
  const tokenReport = {
    type: 'tokens',
    input_tokens: audio,
    input_token_details: { audio_tokens: audio, text_tokens: 0 },
    output_tokens: tokens,
    total_tokens: audio + tokens,
  }
  const usage = context.usage(model.reportsSeconds === true ? { type: 'duration', seconds } : tokenReport)
  const times = context.usage({ duration: seconds })
  const speakers = segments.map((segment, index) => {
    return { type: 'transcript.text.segment', id: `seg_${index}`, speaker: index % 2 === 0 ? 'A' : 'B', ...segment }
  })
  if (model.streams === true && formText(parts, 'stream') === 'true') {
    const delta = (words: string): string => eventText({ type: 'transcript.text.delta', delta: words })
    const events = [
      ...text.split(/(?<=\s)/).map(delta),
      ...(format === 'diarized_json' ? speakers.map((segment) => eventText(segment)) : []),
      eventText({ type: 'transcript.text.done', text, usage }),
    ]
    return streamReply(OPENAI_HEADERS, events, delta('more '))
  }
  const measured = segments.map((segment, id) => ({ id, seek: 0, ...segment, ...MEASURES }))
  switch (format) {
    case 'verbose_json': {
      const head = { task: 'transcribe', language: 'english', ...times, text }
      return jsonReply(200, OPENAI_HEADERS, { ...head, segments: measured, usage })
    }
    case 'diarized_json':
      return jsonReply(200, OPENAI_HEADERS, { task: 'transcribe', ...times, text, segments: speakers, usage })
    case 'json':
      return jsonReply(200, OPENAI_HEADERS, { text, usage })
    default:
      return fileReply('text/plain; charset=utf-8', new TextEncoder().encode(text), OPENAI_HEADERS)
  }
}
