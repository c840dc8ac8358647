// Every family.
#pragma once

#include "cdna2.h"
#include "cdna3.h"
#include "cdna4.h"
#include "gcn.h"
#include "nvidia.h"
#include "rdna2.h"
#include "rdna3.h"
#include "rdna3_5.h"
#include "rdna4.h"
