const CDN = 'https://cdn.example.net'

/** A submission of each kind in both protocols, four seconds in 720p, by model. */
export const VIDEO_BODIES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'wv2.6-t2v': { input: { prompt: 'a boat' }, parameters: { size: '1280*720', duration: 4 } },
  'wv2.6-i2v': {
    input: { prompt: 'she smiles', img_url: `${CDN}/p.png` },
    parameters: { resolution: '720P', duration: 4 },
  },
  'wv2.6-r2v': {
    input: { prompt: 'character1 waves', reference_urls: [`${CDN}/a.png`] },
    parameters: { size: '1280*720', duration: 4 },
  },
  'wv2.7-t2v': { input: { prompt: 'a boat' }, parameters: { resolution: '720P', duration: 4, ratio: '16:9' } },
  'wv2.7-i2v': {
    input: { prompt: 'she smiles', media: [{ type: 'first_frame', url: `${CDN}/p.png` }] },
    parameters: { resolution: '720P', duration: 4 },
  },
  'wv2.7-r2v': {
    input: { prompt: 'Image 1 waves', media: [{ type: 'reference_image', url: `${CDN}/a.png` }] },
    parameters: { resolution: '720P', duration: 4 },
  },
}

/** The submission for a model, with further fields. */
export function videoBody(model: string, rest: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return { model, duration: 4, resolution: '720p', ...VIDEO_BODIES[model], ...rest }
}
