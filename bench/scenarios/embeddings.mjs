import { jsonFaults } from '../answer-faults.mjs'
import { EMBEDDINGS_COST } from '../costs.mjs'
import { embeddingsRequest } from '../requests.mjs'
import { cpuScenario } from './cpu-scenario.mjs'

const MODEL = 'bench-embedding'

export const scenario = cpuScenario({
  name: 'embeddings',
  title: 'embeddings, 100 × 1024 floats (1.3 MB), 4 connections',
  per: 'request',
  load: { connections: 4 },
  costNanoDollars: EMBEDDINGS_COST,
  target: 1.3,
  goal: 1.2,
  request: () => embeddingsRequest(MODEL),
  faultsOf: (answer, proxy) =>
    jsonFaults(answer, {
      proxy,
      model: MODEL,
      isWhole: ({ data }) => data.length === 100 && data.every(({ embedding }) => embedding.length === 1_024),
    }),
})
