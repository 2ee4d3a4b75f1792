// Runs in a project that has the packed package and webpack: bundles an ES module and a CommonJS file for Node into `packed`.
const webpack = require('webpack')

const config = {
  mode: 'none',
  target: 'node20',
  context: __dirname,
  entry: { modules: './route.mjs', commonjs: './late.cjs' },
  output: { path: `${__dirname}/packed`, filename: '[name].cjs' },
}

webpack(config, (error, stats) => {
  const faults = stats?.toString({ all: false, errors: true, warnings: true }) ?? String(error)
  if (faults === '') return
  console.error(faults)
  process.exitCode = 1
})
