import { imageEditFaults } from '../answer-faults.mjs'
import { EDIT_COST } from '../costs.mjs'
import { imageEditRequest } from '../requests.mjs'
import { cpuScenario } from './cpu-scenario.mjs'

export const scenario = cpuScenario({
  name: 'edits',
  title: 'image edit, 2 MB form in, 2 MB JSON out, 8 connections',
  per: 'request',
  load: { connections: 8 },
  costNanoDollars: EDIT_COST,
  target: 1.2,
  request: () => imageEditRequest('bench-edit'),
  faultsOf: imageEditFaults,
})
