import { jsonFaults } from '../answer-faults.mjs'
import { EMBEDDINGS_COST } from '../costs.mjs'
import { load } from '../measurements/load.mjs'
import { embeddingsRequest } from '../requests.mjs'

const MODEL = 'bench-embedding'

export const scenario = {
  name: 'embeddings',
  title: 'embeddings, 100 × 1024 floats (1.3 MB), 4 connections',
  unit: 'CPU µs/request',
  measurement: load,
  load: { connections: 4 },
  unitsPerAnswer: 1,
  costNanoDollars: EMBEDDINGS_COST,
  headline: 'cpuMicroseconds',
  comparison: 'ratio',
  target: 1.3,
  goal: 1.2,
  request: () => embeddingsRequest(MODEL),
  faultsOf: (answer, proxy) =>
    jsonFaults(answer, {
      proxy,
      model: MODEL,
      isWhole: ({ data }) => data.length === 100 && data.every(({ embedding }) => embedding.length === 1_024),
    }),
}
