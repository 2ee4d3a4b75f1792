import type { VideoAbilities } from '../model-facts.ts'
import type { VideoIntent } from './video-intent.ts'

/** The kind of model that an intent is for, where the catalog does not say which kind the model is. */
export function taskOfIntent(intent: VideoIntent): VideoAbilities['task'] {
  if ((intent.references ?? []).length > 0) return 'r2v'
  const isFromPicture = intent.firstFrame ?? intent.lastFrame ?? intent.firstClip
  return isFromPicture === undefined ? 't2v' : 'i2v'
}
