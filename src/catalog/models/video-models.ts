import type { ModelDefinition } from '../define-model.ts'
import type { VideoAbilities } from '../model.ts'

/** DashScope, text-to-video of Wan 2.5. */
const TEXT_25: VideoAbilities = {
  task: 't2v',
  resolutions: ['480p', '720p', '1080p'],
  durations: [5, 10],
  maxBilledSeconds: 10,
  geometry: 'size',
}
const PICTURE_25: VideoAbilities = { ...TEXT_25, task: 'i2v', geometry: 'resolution' }

/** DashScope, text-to-video of Wan 2.6. */
const TEXT_26: VideoAbilities = {
  task: 't2v',
  resolutions: ['720p', '1080p'],
  durations: { min: 2, max: 15 },
  maxBilledSeconds: 15,
  geometry: 'size',
  takesShotType: true,
}
const PICTURE_26: VideoAbilities = { ...TEXT_26, task: 'i2v', geometry: 'resolution' }
const REFERENCES_26: VideoAbilities = {
  ...TEXT_26,
  task: 'r2v',
  durations: { min: 2, max: 10 },
  // Reference videos are billed too: three of 30 seconds at most.
  maxBilledSeconds: 100,
}

/** DashScope, text-to-video of Wan 2.7. */
const TEXT_27: VideoAbilities = {
  task: 't2v',
  resolutions: ['720p', '1080p'],
  durations: { min: 2, max: 15 },
  maxBilledSeconds: 15,
  geometry: 'resolution-ratio',
}
const PICTURE_27: VideoAbilities = {
  ...TEXT_27,
  task: 'i2v',
  geometry: 'resolution',
  // A first clip of 10 seconds at most is billed too.
  maxBilledSeconds: 25,
}
const REFERENCES_27: VideoAbilities = {
  ...TEXT_27,
  task: 'r2v',
  durationsWithReferenceVideo: { min: 2, max: 10 },
  // Reference videos are billed too: five of 30 seconds at most.
  maxBilledSeconds: 160,
}

/**
 * Video models (API specification, "Video generation request"). The protocol says which of the vendor's two body layouts a
 * model takes; 2.5 takes that of 2.6.
 */
export const VIDEO_MODELS: readonly ModelDefinition[] = [
  wan('2.5-t2v-preview', 'wan-2-6', 'Wan 2.5 Text to Video Preview', TEXT_25),
  wan('2.5-i2v-preview', 'wan-2-6', 'Wan 2.5 Image to Video Preview', PICTURE_25),
  wan('2.6-t2v', 'wan-2-6', 'Wan 2.6 Text to Video', TEXT_26),
  wan('2.6-i2v', 'wan-2-6', 'Wan 2.6 Image to Video', PICTURE_26),
  wan('2.6-i2v-flash', 'wan-2-6', 'Wan 2.6 Image to Video Flash', { ...PICTURE_26, canMute: true }),
  wan('2.6-r2v', 'wan-2-6', 'Wan 2.6 Reference to Video', REFERENCES_26),
  wan('2.6-r2v-flash', 'wan-2-6', 'Wan 2.6 Reference to Video Flash', { ...REFERENCES_26, canMute: true }),
  wan('2.7-t2v', 'wan-2-7', 'Wan 2.7 Text to Video', TEXT_27),
  wan('2.7-t2v-2026-04-25', 'wan-2-7', 'Wan 2.7 Text to Video 2026-04-25', TEXT_27, Date.UTC(2026, 3, 25) / 1000),
  wan('2.7-i2v', 'wan-2-7', 'Wan 2.7 Image to Video', PICTURE_27),
  wan('2.7-i2v-2026-04-25', 'wan-2-7', 'Wan 2.7 Image to Video 2026-04-25', PICTURE_27, Date.UTC(2026, 3, 25) / 1000),
  wan('2.7-r2v', 'wan-2-7', 'Wan 2.7 Reference to Video', REFERENCES_27),
]

function wan(
  variant: string,
  protocol: string,
  displayName: string,
  video: VideoAbilities,
  created?: number,
): ModelDefinition {
  const upstream = `wan${variant}`
  return {
    id: `wv${variant}`,
    kind: 'video',
    vendor: 'dashscope',
    upstream,
    protocol,
    video,
    aliases: [upstream],
    created,
    displayName,
  }
}
