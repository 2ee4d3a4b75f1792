import type { ModelDefinition } from '../define-model.ts'

/**
 * Video models (API specification, "Video generation request"). The protocol says which of the vendor's two body layouts a
 * model takes; 2.5 takes that of 2.6.
 */
export const VIDEO_MODELS: readonly ModelDefinition[] = [
  wan('2.5-t2v-preview', 'wan-2-6', 'Wan 2.5 Text to Video Preview'),
  wan('2.5-i2v-preview', 'wan-2-6', 'Wan 2.5 Image to Video Preview'),
  wan('2.6-t2v', 'wan-2-6', 'Wan 2.6 Text to Video'),
  wan('2.6-i2v', 'wan-2-6', 'Wan 2.6 Image to Video'),
  wan('2.6-i2v-flash', 'wan-2-6', 'Wan 2.6 Image to Video Flash'),
  wan('2.6-r2v', 'wan-2-6', 'Wan 2.6 Reference to Video'),
  wan('2.6-r2v-flash', 'wan-2-6', 'Wan 2.6 Reference to Video Flash'),
  wan('2.7-t2v', 'wan-2-7', 'Wan 2.7 Text to Video'),
  wan('2.7-t2v-2026-04-25', 'wan-2-7', 'Wan 2.7 Text to Video 2026-04-25', Date.UTC(2026, 3, 25) / 1000),
  wan('2.7-i2v', 'wan-2-7', 'Wan 2.7 Image to Video'),
  wan('2.7-i2v-2026-04-25', 'wan-2-7', 'Wan 2.7 Image to Video 2026-04-25', Date.UTC(2026, 3, 25) / 1000),
  wan('2.7-r2v', 'wan-2-7', 'Wan 2.7 Reference to Video'),
]

function wan(variant: string, protocol: string, displayName: string, created?: number): ModelDefinition {
  const upstream = `wan${variant}`
  return {
    id: `wv${variant}`,
    kind: 'video',
    vendor: 'dashscope',
    upstream,
    protocol,
    aliases: [upstream],
    created,
    displayName,
  }
}
