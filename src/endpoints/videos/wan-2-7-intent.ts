import { isJsonObject } from '../../core/json.ts'
import type { VideoAbilities } from '../model-facts.ts'
import { IntentReader } from './intent-reader.ts'
import { taskOfIntent } from './task-of-intent.ts'
import { isGiven } from './video-fault.ts'
import type { ReadIntent, VideoIntent, VideoReference, WrittenIntent } from './video-intent.ts'
import type { VideoModelFacts } from './video-protocol.ts'
import type { VideoRequest } from './video-request.ts'
import { MAX_WAN_27_REFERENCES } from './wan-2-7-media.ts'
import { writtenSettings } from './written-settings.ts'

/** DashScope, text-to-video of Wan 2.7: values of `ratio`. */
const RATIOS: readonly string[] = ['16:9', '9:16', '1:1', '4:3', '3:4']

type SingleMediaField = 'firstFrame' | 'lastFrame' | 'firstClip' | 'audio'

/** Media that stand for themselves, by `type`. */
const SINGLE_MEDIA: ReadonlyMap<unknown, SingleMediaField> = new Map([
  ['first_frame', 'firstFrame'],
  ['last_frame', 'lastFrame'],
  ['first_clip', 'firstClip'],
  ['driving_audio', 'audio'],
])

/** Reads a body of the 2.7 layout. */
export function readWan27Intent(request: VideoRequest): ReadIntent {
  const reader = new IntentReader(request)
  reader.text('input.prompt', 'prompt')
  reader.text('input.negative_prompt', 'negativePrompt')
  const media = reader.member('input.media')
  if (Array.isArray(media)) readMedia(reader, media)
  else reader.text('input.audio_url', 'audio')
  reader.integer('parameters.seed', 'seed')
  reader.flag('parameters.watermark', 'watermark')
  reader.flag('parameters.prompt_extend', 'promptExtend')
  // `shot_type` is taken by the vendor and has no effect.
  for (const name of ['duration', 'resolution', 'ratio', 'shot_type']) reader.skip(`parameters.${name}`)
  return reader.done()
}

function readMedia(reader: IntentReader, media: readonly unknown[]): void {
  reader.skip('input.media')
  const references: VideoReference[] = []
  const seen = new Set<string>()
  for (const [index, item] of media.entries()) {
    const param = `input.media[${index}]`
    if (!isJsonObject(item) || typeof item['url'] !== 'string') {
      reader.refuse(param)
      continue
    }
    const { type, url, reference_voice: voice, ...rest } = item
    for (const name of Object.keys(rest)) reader.refuse(`${param}.${name}`)
    const field = SINGLE_MEDIA.get(type)
    const isReference = type === 'reference_image' || type === 'reference_video'
    if (isGiven(voice) && !(isReference && typeof voice === 'string')) reader.refuse(`${param}.reference_voice`)
    if (isReference) {
      reader.origins.set(`references[${references.length}]`, param)
      reader.origins.set(`references[${references.length}].voice`, `${param}.reference_voice`)
      const kind = type === 'reference_video' ? 'video' : 'image'
      references.push({ kind, url, ...(typeof voice === 'string' ? { voice } : {}) })
    } else if (field === undefined || seen.has(field)) reader.refuse(param)
    else {
      seen.add(field)
      reader.set('input.media', field, url)
      reader.origins.set(field, param)
    }
  }
  if (references.length > 0) reader.set('input.media', 'references', references)
}

/** Writes an intent in the 2.7 layout, for the kind of the model. */
export function writeWan27Intent(intent: VideoIntent, model: VideoModelFacts): WrittenIntent {
  const task = model.video?.task ?? taskOfIntent(intent)
  const impossible: string[] = []
  const input = writtenInput(intent, task, impossible)
  const geometry = model.video?.geometry ?? (task === 'i2v' ? 'resolution' : 'resolution-ratio')
  const ratio = geometry === 'resolution-ratio' ? intent.aspectRatio : undefined
  if (ratio !== undefined && !RATIOS.includes(ratio)) impossible.push('aspectRatio')
  if (intent.mute === true) impossible.push('mute')
  if (intent.shotType !== undefined && intent.shotType !== 'single') impossible.push('shotType')
  const parameters: Record<string, unknown> = {
    resolution: intent.resolution.toUpperCase(),
    ...(ratio === undefined ? {} : { ratio }),
    duration: intent.seconds,
    ...writtenSettings(intent),
  }
  return { input, parameters, impossible }
}

function writtenInput(intent: VideoIntent, task: VideoAbilities['task'], impossible: string[]) {
  const input: Record<string, unknown> = {}
  if (intent.prompt !== undefined) input['prompt'] = intent.prompt
  if (intent.negativePrompt !== undefined) input['negative_prompt'] = intent.negativePrompt
  const media: Record<string, unknown>[] = []
  const allowed = allowedMedia(intent, task)
  for (const [type, field] of SINGLE_MEDIA) {
    const url = intent[field]
    if (url === undefined) continue
    if (task === 't2v' && field === 'audio') input['audio_url'] = url
    else if (allowed.includes(field)) media.push({ type, url })
    else impossible.push(field)
  }
  const references = intent.references ?? []
  const hasTooMany = references.length > MAX_WAN_27_REFERENCES
  if (references.length > 0 && (task !== 'r2v' || hasTooMany)) impossible.push('references')
  media.push(...references.map(referenceItem))
  if (media.length > 0) input['media'] = media
  return input
}

/** DashScope, Wan 2.7: a first clip goes with a last frame alone, references with a first frame alone. */
function allowedMedia(intent: VideoIntent, task: string): readonly string[] {
  if (task === 't2v') return []
  if (task === 'r2v') return ['firstFrame']
  return intent.firstClip === undefined ? ['firstFrame', 'lastFrame', 'audio'] : ['firstClip', 'lastFrame']
}

function referenceItem({ kind, url, voice }: VideoReference): Record<string, unknown> {
  const type = kind === 'video' ? 'reference_video' : 'reference_image'
  return { type, url, ...(voice === undefined ? {} : { reference_voice: voice }) }
}
