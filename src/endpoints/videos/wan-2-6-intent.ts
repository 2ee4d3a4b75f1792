import type { VideoAbilities } from '../model-facts.ts'
import { IntentReader } from './intent-reader.ts'
import { referenceKind } from './reference-kind.ts'
import { kindsToNumbered, namesByKind, namesNumbered, numberedToKinds } from './reference-names.ts'
import { taskOfIntent } from './task-of-intent.ts'
import type { ReadIntent, VideoIntent, VideoReference, WrittenIntent } from './video-intent.ts'
import type { VideoModelFacts } from './video-protocol.ts'
import type { VideoRequest } from './video-request.ts'
import { sizeFor } from './video-sizes.ts'
import { writtenSettings } from './written-settings.ts'

/** DashScope, reference-to-video of Wan 2.6: pictures and videos together, and videos among them. */
const MAX_REFERENCES = 5
const MAX_REFERENCE_VIDEOS = 3

/** Reads a body of the 2.6 layout. References whose file names do not tell picture from video are listed as unread. */
export function readWan26Intent(request: VideoRequest): ReadIntent {
  const reader = new IntentReader(request)
  const references = readReferences(reader)
  reader.text('input.prompt', 'prompt')
  const prompt = reader.member('input.prompt')
  if (typeof prompt === 'string' && references.length > 0) {
    // These words would begin to mean something.
    if (namesByKind(prompt, references)) reader.refuse('input.prompt')
    reader.set('input.prompt', 'prompt', numberedToKinds(prompt, references))
  }
  reader.text('input.negative_prompt', 'negativePrompt')
  // Some of the vendor's pages put it here.
  reader.text('parameters.negative_prompt', 'negativePrompt')
  reader.text('input.img_url', 'firstFrame')
  reader.text('input.audio_url', 'audio')
  reader.integer('parameters.seed', 'seed')
  reader.flag('parameters.watermark', 'watermark')
  reader.flag('parameters.prompt_extend', 'promptExtend')
  if (reader.member('parameters.audio') === false) reader.set('parameters.audio', 'mute', true)
  else if (reader.member('parameters.audio') === true) reader.skip('parameters.audio')
  if (reader.member('parameters.shot_type') === 'single') reader.skip('parameters.shot_type')
  else reader.text('parameters.shot_type', 'shotType')
  for (const billed of ['duration', 'size', 'resolution']) reader.skip(`parameters.${billed}`)
  return reader.done()
}

function readReferences(reader: IntentReader): VideoReference[] {
  const references: VideoReference[] = []
  // The older of the two fields holds videos only.
  for (const [param, knownKind] of [
    ['input.reference_urls', undefined],
    ['input.reference_video_urls', 'video'],
  ] as const) {
    const urls = reader.member(param)
    if (!Array.isArray(urls)) continue
    reader.skip(param)
    for (const [index, url] of urls.entries()) {
      if (typeof url !== 'string') {
        reader.refuse(`${param}[${index}]`)
        continue
      }
      const kind = knownKind ?? referenceKind(url)
      if (kind === undefined) reader.refuse(`${param}[${index}]`)
      reader.origins.set(`references[${references.length}]`, `${param}[${index}]`)
      references.push({ kind: kind ?? 'image', url })
    }
  }
  if (references.length > 0) reader.set('input.reference_urls', 'references', references)
  return references
}

/** Writes an intent in the 2.6 layout, for the kind of the model. */
export function writeWan26Intent(intent: VideoIntent, model: VideoModelFacts): WrittenIntent {
  const task = model.video?.task ?? taskOfIntent(intent)
  const impossible: string[] = []
  const input = writtenInput(intent, task, impossible)
  const parameters: Record<string, unknown> = {
    ...writtenGeometry(intent, model.video?.geometry ?? (task === 'i2v' ? 'resolution' : 'size'), impossible),
    duration: intent.seconds,
    ...writtenShots(intent, model.video, impossible),
    ...writtenSettings(intent),
  }
  return { input, parameters, impossible }
}

function writtenInput(intent: VideoIntent, task: VideoAbilities['task'], impossible: string[]) {
  const input: Record<string, unknown> = {}
  const { prompt, negativePrompt, firstFrame, audio, references = [] } = intent
  if (prompt !== undefined) {
    input['prompt'] = kindsToNumbered(prompt, references)
    if (namesNumbered(prompt, references)) impossible.push('prompt')
  }
  if (negativePrompt !== undefined) input['negative_prompt'] = negativePrompt
  if (firstFrame !== undefined && task === 'i2v') input['img_url'] = firstFrame
  else if (firstFrame !== undefined) impossible.push('firstFrame')
  if (intent.lastFrame !== undefined) impossible.push('lastFrame')
  if (intent.firstClip !== undefined) impossible.push('firstClip')
  if (references.length > 0) {
    impossible.push(...impossibleReferences(references, task))
    if (task === 'r2v') input['reference_urls'] = references.map(({ url }) => url)
  }
  if (audio !== undefined && task === 'r2v') impossible.push('audio')
  else if (audio !== undefined) input['audio_url'] = audio
  return input
}

function writtenGeometry(intent: VideoIntent, geometry: VideoAbilities['geometry'], impossible: string[]) {
  if (geometry !== 'size') return { resolution: intent.resolution.toUpperCase() }
  const size = sizeFor(intent.resolution, intent.aspectRatio ?? '16:9')
  if (size !== undefined) return { size }
  impossible.push('aspectRatio')
  return {}
}

/** Sound and shots, which only some models know; a model of unknown abilities is taken to know them. */
function writtenShots({ mute, shotType }: VideoIntent, video: VideoAbilities | undefined, impossible: string[]) {
  const canMute = video === undefined || video.canMute === true
  const takesShotType = video === undefined || video.takesShotType === true
  if (mute === true && !canMute) impossible.push('mute')
  if (shotType !== undefined && shotType !== 'single' && !takesShotType) impossible.push('shotType')
  return {
    ...(mute === true && canMute ? { audio: false } : {}),
    ...(shotType !== undefined && takesShotType ? { shot_type: shotType } : {}),
  }
}

function impossibleReferences(references: readonly VideoReference[], task: string): string[] {
  const videos = references.filter(({ kind }) => kind === 'video').length
  if (task !== 'r2v' || references.length > MAX_REFERENCES || videos > MAX_REFERENCE_VIDEOS) return ['references']
  return references.flatMap(({ url, voice }, index) => [
    // Only uploaded files and those on the web are taken.
    ...(url.startsWith('data:') ? [`references[${index}]`] : []),
    ...(voice === undefined ? [] : [`references[${index}].voice`]),
  ])
}
